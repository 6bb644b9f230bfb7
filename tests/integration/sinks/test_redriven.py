"""Redriven events: the row of one that was set aside is closed when the event is applied."""

from dataclasses import replace

import pytest

from tests.integration.sinks.conftest import Feed, Road
from tests.integration.sinks.deliveries import deposit

SET_ASIDE = "SELECT event_id, reason FROM quarantined_events ORDER BY source_partition, source_offset"


@pytest.fixture
def feed(road: Road) -> Feed:
    """Deliveries in partition 0."""
    return Feed(road.applier(0))


def test_a_redriven_event_closes_its_row_when_it_is_applied(road: Road, feed: Feed) -> None:
    """The row is marked in the transaction that applies the event; set aside again, the newest row is the open one."""
    road.correlate("dep-1")
    road.execute("ALTER TABLE pg_outbox ADD CONSTRAINT ck CHECK (causation_id <> 'evt-1')")
    event = deposit("evt-1", "dep-1", 1, "settled")
    sent_again = replace(event, origin="redrive")
    feed.apply(event)
    feed.apply(sent_again)
    states = "SELECT state, attempts FROM quarantined_events ORDER BY id"
    assert road.rows(states) == [("redriven", 1), ("open", 1)]
    feed.apply(sent_again, replayed_from=1)
    assert road.rows(states) == [("redriven", 1), ("open", 1)]
    road.execute("ALTER TABLE pg_outbox DROP CONSTRAINT ck")
    feed.apply(sent_again)
    assert road.rows(states) == [("redriven", 1), ("redriven", 1)]
    assert road.rows("SELECT origin, verdict FROM pg_webhook_inbox") == [("redrive", "advanced")]


def test_an_applied_event_closes_only_the_row_of_its_own_object(road: Road, feed: Feed) -> None:
    """Two objects under one event id: handling one leaves the other's row open, with its bytes."""
    for object_id in ("dep-1", "dep-2"):
        road.correlate(object_id)
    feed.apply(deposit("evt-1", "dep-1", 1, "settled", ordered_amount_minor=-1))
    feed.apply(deposit("evt-1", "dep-2", 1, "settled", ordered_amount_minor=-1))
    feed.apply(deposit("evt-1", "dep-1", 1, "open"))
    states = "SELECT object_id, state FROM quarantined_events ORDER BY id"
    assert road.rows(states) == [("dep-1", "redriven"), ("dep-2", "open")]
