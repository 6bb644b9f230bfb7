"""Recovery that clears events out of the agents' queues (faust-streaming/faust#596): the fault, and its repair."""

import signal

import pytest
from confluent_kafka.admin import NewTopic

from streams.guard import Delivery, encode, judge
from streams.positions import Positions
from tallyhook.kafka import admin, producer
from tests.integration.streams.conftest import MakeWorker
from tests.integration.streams.traffic import (
    Place,
    Road,
    assert_first_passes_in_order,
    assert_nothing_lost,
    disordered,
    header_texts,
    source,
)
from tests.integration.streams.worker import Worker, until

PROGRAM = "tests.integration.streams.programs.delayed_recovery"
LATE_FETCH = "tests.integration.streams.programs.late_fetch"
EVENTS = 800


def leave_a_changelog(road: Road) -> None:
    """As a worker leaves it that was killed before its first commit: states in every partition, no position."""
    client, topic = admin(road.kafka), f"{road.group}-objects-changelog"
    compacted = NewTopic(topic, road.partitions, 1, config={"cleanup.policy": "compact"})
    client.create_topics([compacted])[topic].result(30)
    failures: list[object] = []
    writer = producer(road.kafka, linger_ms=5, delivery_timeout_seconds=30, on_fatal=failures.append)
    _, seen = judge(None, Delivery(1, "open", 20_000))
    for partition in range(road.partitions):
        writer.produce(topic, key=f"dep_before_{partition}", value=encode(seen), partition=partition)
    assert writer.flush(30) == 0
    assert failures == []


def delayed(make_worker: MakeWorker, kind: str) -> Worker:
    """A worker with a slow end of recovery."""
    return make_worker(kind, program=("-m", PROGRAM, kind))


def test_stock_recovery_loses_events(road: Road, make_worker: MakeWorker) -> None:
    """Shows the fault, without which the repair would prove nothing: the group is done and events are missing."""
    leave_a_changelog(road)
    road.write(disordered(EVENTS, 80, seed=1))
    worker = delayed(make_worker, "stock")
    worker.start()
    # What comes after the recovery is passed on, so the worker works; what came during it is gone.
    until(lambda: "Worker ready" in worker.log, 90, "recovery completed")
    early = road.events().keys()
    road.write(disordered(EVENTS, 80, seed=2, first=EVENTS))
    later = road.events().keys() - early
    until(lambda: later <= passed_on(road), 90, "what was written after the recovery is passed on")
    lost = early - passed_on(road)
    assert lost
    until(lambda: bool(committed_past(road, lost)), 30, "the group's position lies beyond an event that was lost")


def passed_on(road: Road) -> set[Place]:
    """The deliveries that came out."""
    return {source(message) for messages in road.outputs().values() for message in messages}


def committed_past(road: Road, lost: set[Place]) -> list[Place]:
    """Lost events that no restart would read again."""
    found = Positions(road.kafka, road.names, road.group, 10).read(range(road.partitions))
    return [(partition, offset) for partition, offset in lost if (found[partition].committed or 0) > offset]


@pytest.mark.parametrize("kind", ["repaired", "product"])
def test_the_repaired_recovery_loses_none_under_the_same_delay(road: Road, make_worker: MakeWorker, kind: str) -> None:
    """The plain agent on the repaired app, and the whole product: every event comes out."""
    leave_a_changelog(road)
    road.write(disordered(EVENTS, 80, seed=1))
    worker = delayed(make_worker, kind)
    worker.start()
    until(lambda: "Worker ready" in worker.log, 90, "recovery completed")
    road.write(disordered(EVENTS, 80, seed=2, first=EVENTS))
    until(lambda: road.unjudged() == 0, 90, "the group has committed everything")
    assert road.events().keys() - passed_on(road) == set()


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
def test_states_come_back_after_kill_9(road: Road, make_worker: MakeWorker, store: str) -> None:
    """A table that is replayed or found on disk knows every version: all that is sent again is redelivered."""
    worker = make_worker(environment={"TALLYHOOK_STREAM_STORE": store})
    first = list(disordered(EVENTS, 80, seed=3))
    road.write(first)
    worker.start()
    until(lambda: road.unjudged() == 0, 90, "all judged")
    worker.end(signal.SIGKILL)
    before = road.output_count()
    road.write(first)
    worker.start()
    until(lambda: road.unjudged() == 0, 90, "all judged again")
    assert_nothing_lost(road)
    assert_first_passes_in_order(road)
    assert before == EVENTS
    again = [
        header_texts(message)["ce_verdict"]
        for messages in road.outputs().values()
        for message in messages
        if (message.offset() or 0) >= len(messages) / 2
    ]
    assert set(again) == {"redelivered"}
    assert worker.end(signal.SIGTERM) == 0


def rebalanced(road: Road, make_worker: MakeWorker, kind: str) -> Worker:
    """A worker that recovers a second time, because a fellow joined it while it waited for records."""
    leave_a_changelog(road)
    worker = make_worker(kind, program=("-m", LATE_FETCH, kind), environment={"TALLYHOOK_STREAM_STALL_SECONDS": "10"})
    worker.start()
    worker.wait_ready()
    fellow = make_worker("fellow")
    fellow.start()
    fellow.wait_ready()
    road.write(disordered(EVENTS, 80, seed=4))
    return worker


def test_a_changelog_that_is_thrown_away_stops_a_recovery(road: Road, make_worker: MakeWorker) -> None:
    """Shows the fault, without which the repair would prove nothing: the worker waits until its watchdog ends it."""
    worker = rebalanced(road, make_worker, "forgetful")
    assert worker.wait(90) != 0
    assert "stalled: nothing moved" in worker.log


def test_a_changelog_that_came_too_late_is_fetched_again(road: Road, make_worker: MakeWorker) -> None:
    """The same delays, and what cannot be handed over is taken back: the recovery ends, every event is judged."""
    worker = rebalanced(road, make_worker, "product")
    until(lambda: road.unjudged() == 0, 60, lambda: f"all judged; log ends: {worker.log[-3000:]}")
    assert worker.running
    assert worker.log.count("Worker ready") == 2
    assert "fetched while positions changed, fetching again" in worker.log
    assert_nothing_lost(road)
    assert_first_passes_in_order(road)
