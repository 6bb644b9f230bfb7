"""Balance transactions: read, kept once, and never changed."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from schemas.events import TransactionEvent
from sinks.domain import transactions
from sinks.domain.decision import Refusal
from sinks.domain.withdrawal_state import Transaction, TransactionDecision

MOVED: dict[str, object] = {
    "id": "btxn_1",
    "object": "balance_transaction",
    "type": "withdrawal_release",
    "direction": "credit",
    "amount_minor": 30_000,
    "bucket_from": "locked",
    "bucket_to": "available",
    "source": {"object": "withdrawal_order", "id": "wdr_7"},
    "balance_after": {"available_minor": 5, "note": 1e3},
    "created_at": "2026-08-21T16:02:14.338+07:00",
}
KEPT = Transaction(
    btxn_id="btxn_1",
    type="withdrawal_release",
    direction="credit",
    amount_minor=30_000,
    created_at=datetime(2026, 8, 21, 9, 2, 14, 338_000, tzinfo=UTC),
    bucket_from="locked",
    bucket_to="available",
    source_id="wdr_7",
    balance_after=b'{"available_minor": 5, "note": 1000.0}',
)
OPTIONAL = ("bucket_from", "bucket_to", "source", "balance_after")


def body(type_: str = "balance.credited", /, **members: object) -> bytes:
    """A balance event as bytes; members that are None are sent as null."""
    event = {"id": "evt_1", "object": "event", "type": type_, "created_at": "2026-08-21T09:02:15Z", "livemode": True}
    return json.dumps({**event, "data": {"object": {**MOVED, **members}}}).encode()


def without(*names: str) -> bytes:
    """The same without some members."""
    moved = {name: value for name, value in MOVED.items() if name not in names}
    event = {"id": "evt_1", "type": "balance.credited", "created_at": "2026-08-21T09:02:15Z"}
    return json.dumps({**event, "data": {"object": moved}}).encode()


def judged(raw: bytes) -> Transaction | Refusal:
    """The transaction, or why it may not be kept."""
    event = transactions.parse(raw)
    return event if isinstance(event, Refusal) else transactions.read(event)


def test_a_transaction_is_read() -> None:
    """Every member in its place: the instant in UTC, the balance after it as it was sent."""
    assert isinstance(transactions.parse(body()), TransactionEvent)
    assert judged(body()) == KEPT


@pytest.mark.parametrize("type_", ["balance.cleared", "balance.of_tomorrow", "withdrawal.filled"])
def test_the_events_type_decides_nothing(type_: str) -> None:
    """The kind of the object chose these rules already."""
    assert judged(body(type_)) == KEPT


@pytest.mark.parametrize("raw", [without(*OPTIONAL), body(**dict.fromkeys(OPTIONAL))])
def test_what_is_absent_or_null_is_null(raw: bytes) -> None:
    """SQL NULL, never JSON null."""
    assert judged(raw) == replace(KEPT, bucket_from=None, bucket_to=None, source_id=None, balance_after=None)


@pytest.mark.parametrize("source", [{}, {"id": None}, {"object": "payout"}])
def test_a_source_may_have_no_id(source: object) -> None:
    """It is an object all the same."""
    assert judged(body(source=source)) == replace(KEPT, source_id=None)


@pytest.mark.parametrize("balance_after", [0, "5", [], {"a": None}, False])
def test_the_balance_after_may_be_anything(balance_after: object) -> None:
    """It is kept for cross-checks, and no rule reads it."""
    found = judged(body(balance_after=balance_after))
    assert isinstance(found, Transaction)
    assert found.balance_after is not None
    assert json.loads(found.balance_after) == balance_after


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", 5),
        ("object", None),
        ("type", None),
        ("type", 7),
        ("direction", None),
        ("direction", []),
        ("amount_minor", None),
        ("amount_minor", "30000"),
        ("amount_minor", 1.5),
        ("amount_minor", True),
        ("amount_minor", 1 << 63),
        ("amount_minor", -(1 << 63) - 1),
        ("created_at", None),
        ("created_at", 1_755_766_934),
        ("bucket_from", 5),
        ("bucket_to", {}),
        ("source", "wdr_7"),
        ("source", ["wdr_7"]),
        ("source", {"id": 7}),
    ],
)
def test_a_wrong_type_is_named(name: str, value: object) -> None:
    """The whole event is refused, with the field."""
    found = judged(body(**{name: value}))
    assert isinstance(found, Refusal)
    assert found.reason == "body_shape"
    assert f"data.object.{name}" in found.detail


@pytest.mark.parametrize("name", ["id", "object", "type", "direction", "amount_minor", "created_at"])
def test_a_missing_member_is_named(name: str) -> None:
    """Likewise."""
    found = judged(without(name))
    assert isinstance(found, Refusal)
    assert (found.reason, f"`{name}`" in found.detail) == ("body_shape", True)


@pytest.mark.parametrize("amount_minor", [(1 << 63) - 1, -(1 << 63), 0])
def test_every_bigint_is_an_amount(amount_minor: int) -> None:
    """The gateway's sign is its own affair."""
    assert judged(body(amount_minor=amount_minor)) == replace(KEPT, amount_minor=amount_minor)


@pytest.mark.parametrize("created_at", ["", "2026-08-21", "2026-08-21T09:02:14", "2026-02-30T00:00:00Z", "yesterday"])
def test_a_date_must_be_an_instant(created_at: str) -> None:
    """A day that does not exist or a date without its zone would be kept as another instant than was meant."""
    found = judged(body(created_at=created_at))
    assert found == Refusal("body_date", f"data.object.created_at is {created_at!r}")


def test_bytes_that_are_no_json_are_refused() -> None:
    """Though the check of the text comes before."""
    found = judged(b'{"id": ')
    assert isinstance(found, Refusal)
    assert found.reason == "body_not_json"


def test_the_first_of_an_id_is_kept() -> None:
    """With nothing to be said."""
    assert transactions.decide(None, KEPT) == TransactionDecision(KEPT)


@pytest.mark.parametrize("balance_after", [KEPT.balance_after, b"7", None])
def test_the_same_content_counts_once(balance_after: bytes | None) -> None:
    """Whatever the balance after it says: it is a snapshot for cross-checks."""
    again = replace(KEPT, balance_after=balance_after)
    assert transactions.decide(KEPT, again) == TransactionDecision(None, "already_recorded")


def test_instants_are_compared_not_texts() -> None:
    """The same moment in another zone is the same."""
    again = judged(body(created_at="2026-08-21T09:02:14.3380001Z"))
    assert isinstance(again, Transaction)
    assert transactions.decide(KEPT, again) == TransactionDecision(None, "already_recorded")


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("type", replace(KEPT, type="fee")),
        ("direction", replace(KEPT, direction="debit")),
        ("amount_minor", replace(KEPT, amount_minor=30_001)),
        ("bucket_from", replace(KEPT, bucket_from="pending")),
        ("bucket_from", replace(KEPT, bucket_from=None)),
        ("bucket_to", replace(KEPT, bucket_to=None)),
        ("source_id", replace(KEPT, source_id="wdr_8")),
        ("source_id", replace(KEPT, source_id=None)),
        ("created_at", replace(KEPT, created_at=KEPT.created_at.replace(microsecond=338_001))),
    ],
)
def test_other_content_is_a_collision(name: str, other: Transaction) -> None:
    """Either way round: null is a content too."""
    detail = f"balance transaction 'btxn_1' is known with another {name}"
    assert transactions.decide(KEPT, other) == Refusal("transaction_collision", detail)
    assert transactions.decide(other, KEPT) == Refusal("transaction_collision", detail)
