"""Events in order of arrival, with those that were set aside where they were read."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tallyhook.operations.timeline.arrivals import in_order_of_arrival

TOPIC = "tallyhook.events"
BEGUN = datetime(2026, 8, 21, 3, 0, tzinfo=UTC)


def inbox(event_id: str, offset: int, minute: int = 0, version: int = 1) -> dict[str, Any]:
    """A row of the inbox."""
    return {
        "event_id": event_id,
        "event_type": "withdrawal.filled",
        "version": version,
        "sequence": 9,
        "origin": "webhook",
        "key_id": "k1",
        "received_at": BEGUN + timedelta(minutes=minute),
        "verdict": "advanced",
        "reason": None,
        "parked_reason": None,
        "source_partition": 3,
        "source_offset": offset,
    }


def again(event_id: str, offset: int) -> dict[str, Any]:
    """A row of the redeliveries."""
    return {
        "event_id": event_id,
        "received_at": BEGUN,
        "verdict": "redelivered",
        "source_partition": 3,
        "source_offset": offset,
    }


def aside(event_id: str | None, offset: int, minute: int = 0, topic: str = TOPIC, **more: Any) -> dict[str, Any]:
    """A row of the quarantine; its numbers are texts of headers."""
    return {
        "event_id": event_id,
        "event_type": "withdrawal.filled",
        "version": "7",
        "sequence": "12",
        "origin": "webhook",
        "key_id": "k1",
        "reason": "fill_collision",
        "detail": "leg_1 has another amount",
        "source_topic": topic,
        "source_partition": 3,
        "source_offset": offset,
        "at": BEGUN + timedelta(minutes=minute),
        "state": "open",
        "actor": None,
        "note": None,
    } | more


def test_each_delivery_stands_below_its_event() -> None:
    """First and later ones with place and verdict, the reason as a sentence of the language."""
    (event,) = in_order_of_arrival([inbox("evt_1", 5)], [again("evt_1", 8)], [], TOPIC, "th")
    assert (event.arrival, event.event_id, event.version, event.key_id) == (1, "evt_1", 1, "k1")
    told = [(one.source, one.verdict, one.reason) for one in event.deliveries]
    assert told == [
        ("tallyhook.events[3]@5", "advanced", None),
        ("tallyhook.events[3]@8", "redelivered", "seen_before"),
    ]
    assert event.deliveries[1].why == "event นี้เคยมาแล้ว"


def test_a_set_aside_event_stands_where_it_was_read() -> None:
    """By its place among the events; a dead letter, which has none there, by the time."""
    rows = [inbox("evt_1", 5, minute=1), inbox("evt_3", 9, minute=3)]
    apart = [aside("evt_2", 7, minute=1), aside(None, 0, minute=2, topic="tallyhook.dead-letters")]
    events = in_order_of_arrival(rows, [], apart, TOPIC, "en")
    assert [event.event_id for event in events] == ["evt_1", "evt_2", None, "evt_3"]
    assert [event.arrival for event in events] == [1, 2, 3, 4]
    lone = next(event for event in events if event.event_id == "evt_2")
    assert (lone.version, lone.sequence) == (7, 12)
    assert lone.deliveries[0].why.endswith("leg_1 has another amount")


def test_a_place_tells_more_than_a_time() -> None:
    """A row that was written an hour later still stands before the event that was read after it."""
    events = in_order_of_arrival([inbox("evt_2", 9, minute=3)], [], [aside("evt_1", 7, minute=60)], TOPIC, "en")
    assert [event.event_id for event in events] == ["evt_1", "evt_2"]


def test_an_event_that_was_redriven_is_one_event() -> None:
    """Its set-aside delivery comes first, with who closed it, then the one that was applied."""
    closed = aside("evt_1", 5, state="redriven", actor="nok", note="limit raised")
    (event,) = in_order_of_arrival([inbox("evt_1", 8)], [], [closed], TOPIC, "en")
    assert [one.verdict for one in event.deliveries] == ["quarantined", "advanced"]
    assert event.deliveries[0].why.endswith("(redriven by nok: limit raised)")


def test_events_without_an_id_stay_apart() -> None:
    """Two dead letters of one object are two events; a header that is no number is no version."""
    letters = [aside(None, n, topic="tallyhook.dead-letters", version="x", sequence=None) for n in (1, 2)]
    events = in_order_of_arrival([], [], letters, TOPIC, "en")
    assert [(event.arrival, event.event_id, event.version, event.sequence) for event in events] == [
        (1, None, None, None),
        (2, None, None, None),
    ]
