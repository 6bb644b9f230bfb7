"""The record of an outbox row."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import uuid4

import pytest

from schemas.effects import EFFECTS
from schemas.headers import texts
from schemas.topics import TopicNames
from sinks.relay.record import OutboxRow, record_of, topic_of
from sinks.relay.topics import needed

NAMES = TopicNames("shop")
AT = datetime(2026, 3, 1, 7, 30, 0, 250_000, tzinfo=timezone(timedelta(hours=7)))


def _row(payload: str = "{}") -> OutboxRow:
    return OutboxRow(2, 9, uuid4(), "hold_goods", "dep_1", payload, "deposit:dep_1:hold_goods", "evt_7", 3, AT, AT)


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        ('{"a": 1, "b": null}', b'{"a":1,"b":null}'),
        ('{"a": 123456789012345678901234567890}', b'{"a":123456789012345678901234567890}'),
        ('{"a": 1.10}', b'{"a":1.10}'),
        ('{"a": "ก, ข: ค"}', '{"a":"ก, ข: ค"}'.encode()),
    ],
)
def test_only_blanks_leave_the_payload(payload: str, value: bytes) -> None:
    """No digit and no letter changes on the way."""
    made = record_of(_row(payload), "t", "/tallyhook/s").value
    assert (made.encode() if isinstance(made, str) else made) == value


def test_time_is_utc() -> None:
    """RFC 3339 with Z, whatever zone the session had."""
    assert texts(record_of(_row(), "t", "/tallyhook/s").headers)["ce_time"] == "2026-03-01T00:30:00.250000Z"
    assert AT.astimezone(UTC).hour == 0


def test_topics_of_effects_and_balance_entries() -> None:
    """Balance entries stand beside the effects, not among them."""
    assert topic_of(NAMES, "release_goods") == "shop.effects.release-goods"
    assert topic_of(NAMES, "balance_entry") == "shop.balance-entries"
    assert set(needed(NAMES)) == {topic_of(NAMES, effect) for effect in EFFECTS} | {
        "shop.balance-entries",
        "shop.relay-progress",
    }
