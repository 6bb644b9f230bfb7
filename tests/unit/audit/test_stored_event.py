"""Reading stored bytes: instants as timestamptz keeps them, JSON as jsonb compares it, and what is no event."""

import json
from datetime import UTC, datetime

import pytest

from tallyhook.operations.audit.stored_event import (
    InboxEvent,
    Unreadable,
    check_deposit,
    moment,
    parse_json,
    read,
    same_json,
)

MONEY = {
    "ordered_amount_minor": 500,
    "transferred_amount_minor": 450,
    "amount_received_minor": 450,
    "fee_total_minor": 7,
    "credited_amount_minor": 443,
}


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-03-02T10:04:41Z", datetime(2026, 3, 2, 10, 4, 41, tzinfo=UTC)),
        ("2026-03-02 17:04:41.5+07:00", datetime(2026, 3, 2, 10, 4, 41, 500_000, tzinfo=UTC)),
        ("2026-03-02T10:04:41.1234567z", datetime(2026, 3, 2, 10, 4, 41, 123_457, tzinfo=UTC)),
        ("2026-03-02T10:04:41.9999999Z", datetime(2026, 3, 2, 10, 4, 42, tzinfo=UTC)),
        ("2026-02-28T23:59:60Z", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T00:00:00-00:30", datetime(2026, 3, 1, 0, 30, tzinfo=UTC)),
        ("2026-02-30T10:04:41Z", None),
        ("2026-03-02T10:04:41", None),
        ("๒026-03-02T10:04:41Z", None),
        (None, None),
        (7, None),
    ],
)
def test_moments(text: object, at: datetime | None) -> None:
    """Zones, fractions that are rounded, the leap second; None for what is no date-time."""
    assert moment(text) == at


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1, "b": [1.50, true]}', '{"b": [1.5, true], "a": 1.0}', True),
        ("1e2", "100", True),
        ("1", "true", False),
        ("0", "false", False),
        ("[1]", "[1, 2]", False),
        ('{"a": null}', "{}", False),
        ('"1"', "1", False),
        ("9007199254740993", "9007199254740992.0", False),
        ('{"a": 1, "a": 2}', '{"a": 2}', True),
    ],
)
def test_json_is_compared_as_jsonb_does(one: str, other: str, same: bool) -> None:
    """Numbers by value without loss, truth values apart from numbers, members in any order, the last of a name."""
    assert same_json(parse_json(one), parse_json(other)) is same


def event(raw: str, *, event_id: str = "evt", kind: str = "deposit_order") -> InboxEvent:
    """A row of the inbox with these bytes."""
    return InboxEvent(event_id, raw, 0, 0, "advanced", None, datetime.now(UTC), kind, 1)


def test_bytes_of_another_event_are_refused() -> None:
    """Id, object and kind must be those of the row."""
    raw = json.dumps({"id": "evt", "data": {"object": {"id": "dep", "object": "deposit_order"}}})
    assert read(event(raw), "dep")["data"]["object"] == {"id": "dep", "object": "deposit_order"}
    for row, object_id in ((event(raw), "other"), (event(raw, event_id="x"), "dep"), (event(raw, kind="x"), "dep")):
        with pytest.raises(Unreadable, match="its row says"):
            read(row, object_id)
    for broken in ("", "[]", "[" * 100_000, '{"id": 1}', '{"id": "evt", "data": {"object": 7}}'):
        with pytest.raises(Unreadable):
            read(event(broken), "dep")


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount_received_minor": 500},
        {"transferred_amount_minor": 0, "amount_received_minor": 0},
        {"fee_total_minor": 451, "credited_amount_minor": -1},
        {"fee_total_minor": -1, "credited_amount_minor": 451},
        {"credited_amount_minor": 442},
        {"fee_total_minor": None},
        {"ordered_amount_minor": True},
        {"ordered_amount_minor": "500"},
        {"version": None},
        {"version": -1},
        {"status": None},
        {"overpayment": []},
        {"overpayment": {"claim_id": 7}},
    ],
)
def test_what_had_to_be_quarantined(wrong: dict[str, object]) -> None:
    """Each part of the money rule, and the types that the handler relies on."""
    good = {"version": 1, "status": "reversed", **MONEY}
    check_deposit(good)
    with pytest.raises(Unreadable):
        check_deposit(good | wrong)


def test_amounts_bind_only_where_money_moved() -> None:
    """A deposit that is merely open may have any whole amounts, or none."""
    check_deposit({"version": 1, "status": "open", "ordered_amount_minor": 5, "amount_received_minor": 9})
