"""Reading a withdrawal's event: what it brings, and each way in which it had to be quarantined."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tallyhook.operations.audit.stored_event import InboxEvent, Unreadable
from tallyhook.operations.audit.withdrawal_events import read_withdrawal
from tests.unit.audit.withdrawal_samples import NOW, REVERSED_AT, event, fill, reversal


def changed(path: str, value: object, **sample: Any) -> InboxEvent:
    """A sample with one member of its body set to another value, or taken away by `...`."""
    made = event(1, "open", **sample)
    body = json.loads(made.raw)
    *parents, name = path.split(".")
    place = body
    for parent in parents:
        place = place[parent]
    if value is ...:
        del place[name]
    else:
        place[name] = value
    return InboxEvent("evt_1", json.dumps(body), 0, 1, "advanced", None, NOW, "withdrawal_order", 1)


FILLED: dict[str, Any] = {"kind": "filled", "beside": {"fill": fill("a")}}
REVERSED: dict[str, Any] = {"kind": "fill_reversed", "beside": reversal("a")}


@pytest.mark.parametrize(
    ("path", "value", "sample"),
    [
        ("data.object.version", 2, {}),
        ("data.object.version", None, {}),
        ("data.object.status", 7, {}),
        ("data.object.filled_minor", "1", {}),
        ("data.object.amount_total_minor", 2**63, {}),
        ("data.object.settled_splits", 2**15, {}),
        ("data.object.max_splits", True, {}),
        ("data.object.merchant_reference", 1, {}),
        ("data.fill", ..., FILLED),
        ("data.fill.leg_ref", "", FILLED),
        ("data.fill.leg_ref", "ก" * 171, FILLED),
        ("data.fill.amount_minor", None, FILLED),
        ("data.fill.sequence", -(2**15) - 1, FILLED),
        ("data.fill.settled_at", "2026-02-30T00:00:00Z", FILLED),
        ("data.fill.auto_confirm_at", 7, FILLED),
        ("data.reversal", ..., REVERSED),
        ("data.fill", [], REVERSED),
        ("data.fill.amount_minor", ..., REVERSED),
        ("data.fill.balance_transaction_id", "other", REVERSED),
        ("data.reversal.reason_code", "WEATHER", REVERSED),
        ("data.reversal.balance_transaction_id", "btxn_a", REVERSED),
        ("data.reversal.balance_transaction_id", "", REVERSED),
        ("data.replacement_withdrawal_id", 7, REVERSED),
        ("created_at", "2026-03-01", REVERSED),
        ("created_at", ..., REVERSED),
    ],
)
def test_what_had_to_be_quarantined(path: str, value: object, sample: dict[str, Any]) -> None:
    """Each member with a rule, by a value that breaks it."""
    read_withdrawal(event(1, "open", **sample), "wdr")
    with pytest.raises(Unreadable):
        read_withdrawal(changed(path, value, **sample), "wdr")


def test_other_types_may_carry_anything_beside_their_snapshot() -> None:
    """The type alone decides whether a chunk or a reversal is looked at."""
    reading = read_withdrawal(event(1, "open", kind="matched", beside={"fill": 7, "reversal": []}), "wdr")
    assert (reading.fill, reading.tombstone, reading.can_build) == (None, None, False)


def test_what_a_chunk_and_a_reversal_bring() -> None:
    """Instants in UTC; of a reversed chunk only what its reversal needs is looked at."""
    chunk = fill("a", sequence=2, settled_at="2026-03-01T16:00:00+07:00")
    kept = read_withdrawal(event(1, "open", kind="filled", beside={"fill": chunk}), "wdr").fill
    assert kept is not None
    assert (kept.sequence, kept.settled_at) == (2, datetime(2026, 3, 1, 9, tzinfo=UTC))
    beside = reversal("a") | {"replacement_withdrawal_id": "wdr_2"}
    beside["fill"] = fill("a", sequence="not looked at")
    tombstone = read_withdrawal(event(1, "settled", kind="fill_reversed", beside=beside), "wdr").tombstone
    assert tombstone is not None
    assert (tombstone.reversed_at, tombstone.status_snapshot) == (REVERSED_AT, "settled")
    assert (tombstone.replacement_withdrawal_id, tombstone.amount_minor) == ("wdr_2", 30_000)


@pytest.mark.parametrize(
    ("members", "our_ref"),
    [
        ({"merchant_reference": "m", "metadata": {"ticket": "t"}}, "m"),
        ({"merchant_reference": "", "metadata": {"ticket": "t", "payout_id": "p"}}, "t"),
        ({"metadata": {"ticket": 7, "payout_id": "p"}}, "p"),
        ({"metadata": "text"}, None),
        ({"metadata": {"ticket": ""}}, None),
    ],
)
def test_the_merchants_own_reference(members: dict[str, object], our_ref: str | None) -> None:
    """The first text that is not empty, of three places."""
    assert read_withdrawal(event(1, "open", members), "wdr").our_ref == our_ref
