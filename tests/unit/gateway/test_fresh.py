"""Events that were never sent before, made of known ones."""

import json
from datetime import UTC, datetime

import pytest

from tallyhook.errors import UsageError
from tallyhook.gateway.fresh import freshened
from tallyhook.gateway.sources import SourceEvent

MOMENT = datetime(2026, 3, 2, 10, 4, 41, tzinfo=UTC)


def source(event_id: str, object_id: str, **more: object) -> SourceEvent:
    """An event as `sources.events` gives it."""
    event = {"id": event_id, "created_at": "2020-01-01T00:00:00Z", "data": {"object": {"id": object_id}}, **more}
    return SourceEvent(json.dumps(event).encode(), event_id)


def test_ids_are_new_each_time_and_the_rest_stays() -> None:
    """Neither the event nor its object was ever seen, however often the same file is taken."""
    seen = set()
    for _ in range(3):
        (made,) = freshened([source("evt_1", "dep_1", sequence=7, note="ก")], MOMENT)
        event = json.loads(made.body)
        seen |= {event["id"], event["data"]["object"].pop("id")}
        assert made.id == event.pop("id")
        assert event == {"created_at": "2026-03-02T10:04:41Z", "data": {"object": {}}, "sequence": 7, "note": "ก"}
    assert len(seen) == 6
    assert {text.rsplit("_", 1)[0] for text in seen} == {"evt_1", "dep_1"}


def test_events_of_one_object_stay_together() -> None:
    """A scenario keeps its shape: what was one object is one new object."""
    made = list(freshened([source("evt_1", "dep_1"), source("evt_2", "dep_1"), source("evt_3", "dep_2")], MOMENT))
    objects = [json.loads(event.body)["data"]["object"]["id"] for event in made]
    assert objects[0] == objects[1] != objects[2]
    assert len({event.id for event in made}) == 3


@pytest.mark.parametrize(
    "body", [b"\xff", b"[]", b'"text"', b"{}", b'{"id":"e"}', b'{"id":1,"data":{"object":{"id":"d"}}}', b"[" * 200_000]
)
def test_what_has_no_ids_is_refused(body: bytes) -> None:
    """With the number of the event."""
    with pytest.raises(UsageError, match="event 2 "):
        list(freshened([source("evt_1", "dep_1"), SourceEvent(body, None)], MOMENT))
