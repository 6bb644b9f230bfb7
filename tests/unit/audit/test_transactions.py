"""What must come of the events of a balance transaction."""

import json
from datetime import UTC, datetime

import pytest

from tallyhook.operations.audit.stored_event import InboxEvent
from tallyhook.operations.audit.transactions import Movement, Transaction

CREATED_AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
KEPT = Transaction("fee", "debit", 802, None, "available", "wdr", CREATED_AT, "mer", {"available_minor": 5})


def event(number: int, noted: str | None = None, *, parked: bool = False, **members: object) -> InboxEvent:
    """An event of the transaction `btx`."""
    o: dict[str, object] = {"id": "btx", "object": "balance_transaction", "type": "fee", "direction": "debit"}
    o |= {"amount_minor": 802, "bucket_to": "available", "source": {"id": "wdr"}, "created_at": "2026-03-01T09:00:00Z"}
    o |= {"balance_after": {"available_minor": 5}} | members
    body = {"id": f"evt_{number}", "account": {"merchant_id": "mer"}, "data": {"object": o}}
    at = None if parked else CREATED_AT
    return InboxEvent(f"evt_{number}", json.dumps(body), 0, number, "immutable", noted, at, "balance_transaction", None)


def test_the_first_stays_and_the_same_again_is_known() -> None:
    """Its instant may be written otherwise, and the balance after it may be another."""
    made = Movement("btx")
    made.apply_all([event(1), event(2, created_at="2026-03-01T16:00:00+07:00", balance_after=None)])
    assert made.kept == KEPT
    assert [judgement.reason for judgement in made.outcome.judgements] == [None, "already_recorded"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount_minor": 803},
        {"source": None},
        {"direction": "credit"},
        {"type": None},
        {"amount_minor": "802"},
        {"bucket_from": 7},
        {"source": "wdr"},
        {"source": {"id": 7}},
        {"created_at": "2026-03-01"},
    ],
)
def test_what_had_to_be_quarantined(wrong: dict[str, object]) -> None:
    """Other content under the same id, and what is none."""
    made = Movement("btx")
    made.apply_all([event(1), event(2, **wrong)])  # type: ignore[arg-type]  # members of the object
    assert [failed.event_id for failed, _ in made.outcome.unreadable] == ["evt_2"]
    assert made.kept == KEPT


def test_nothing_waits() -> None:
    """A parked balance transaction is a fault."""
    made = Movement("btx")
    made.apply_all([event(1, parked=True)])
    assert "waits for nothing" in made.outcome.unreadable[0][1]


def test_after_pruning_the_note_tells_whether_it_was_known() -> None:
    """Then the merchant and the balance after it were another event's; without pruning it is a fault."""
    pruned, whole = Movement("btx", earlier_pruned=True), Movement("btx")
    for made in (pruned, whole):
        made.apply_all([event(2, "already_recorded")])
    assert (pruned.first_is_pruned, whole.first_is_pruned) == (True, False)
    assert [made.outcome.judgements[0].reason for made in (pruned, whole)] == ["already_recorded", None]


def test_differences_are_named_by_column() -> None:
    """And what a balance after it is, is not printed."""
    other = Transaction("fee", "debit", 803, None, "available", "wdr", CREATED_AT, "mer", None)
    assert KEPT.differences(other) == ["amount_minor is 802 instead of 803", "balance_after is another"]
    assert KEPT.differences(KEPT) == []
