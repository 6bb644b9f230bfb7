"""Recovery that clears events out of the agents' queues (faust-streaming/faust#596): the fault, and its repair."""

import signal

import pytest

from streams.positions import Positions
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
EVENTS = 800


def delayed(make_worker: MakeWorker, kind: str) -> Worker:
    """A worker with a slow end of recovery."""
    return make_worker(kind, program=("-m", PROGRAM, kind))


def test_stock_recovery_loses_events(road: Road, make_worker: MakeWorker) -> None:
    """Shows the fault, without which the repair would prove nothing: the group is done and events are missing."""
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
    """The plain agent with nothing but the repair, and the whole product: every event comes out."""
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
