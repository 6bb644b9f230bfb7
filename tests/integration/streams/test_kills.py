"""Workers that are killed, stopped and rebalanced lose nothing."""

import random
import signal
import threading
import time

import pytest

from tests.integration.streams.conftest import MakeWorker
from tests.integration.streams.traffic import (
    Road,
    assert_first_passes_in_order,
    assert_nothing_lost,
    assert_versions_never_fall,
    disordered,
)
from tests.integration.streams.worker import Worker, until


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_two_workers_under_kill_9_lose_nothing(
    road: Road, make_worker: MakeWorker, request: pytest.FixtureRequest
) -> None:
    """Killed at random, before the first commit too, over rebalances: every delivery comes out, in order."""
    kills = 12 if request.config.getoption("--chaos-long", default=False) else 6
    chance = random.Random(11)
    workers = [make_worker(name, environment={"TALLYHOOK_STREAM_BATCH_EVENTS": "200"}) for name in ("one", "two")]
    road.write(disordered(4000, 300, seed=1))  # waits before the group has ever committed
    writer = threading.Thread(
        target=lambda: [road.write(disordered(500, 300, seed, 5000 + 500 * seed)) for seed in range(2, 2 + kills)]
    )
    writer.start()
    try:
        for number in range(kills):
            for worker in workers:
                worker.keep_running()
            victim = workers[number % 2]
            before, patience = road.output_count(), time.monotonic() + chance.uniform(2, 9)
            until(lambda b=before, p=patience: road.output_count() > b or time.monotonic() > p, 30, "output or time")  # type: ignore[misc]
            victim.end(signal.SIGKILL)
    finally:
        writer.join()
    until(lambda: all(worker.keep_running() for worker in workers) and road.unjudged() == 0, 150, "all judged")
    for worker in workers:
        worker.wait_ready(90)
    assert [worker.end(signal.SIGTERM, 90) for worker in workers] == [0, 0]
    assert_nothing_lost(road)
    assert_first_passes_in_order(road)


def test_a_stop_under_load_loses_and_repeats_nothing(road: Road, worker: Worker) -> None:
    """SIGTERM waits for the batch in flight, commits it and ends with 0; the next start goes on exactly there."""
    written = road.write(disordered(12_000, 500, seed=5))
    for _ in range(2):
        worker.start()
        before = road.output_count()
        until(lambda b=before: road.output_count() > b, 90, "first outputs")  # type: ignore[misc]
        assert worker.end(signal.SIGTERM, 90) == 0
    worker.start()
    # All may be judged already: a process that has only begun would still die of the signal.
    worker.wait_ready(90)
    until(lambda: road.unjudged() == 0, 90, "all judged")
    assert worker.end(signal.SIGTERM, 90) == 0
    assert road.output_count() == written
    assert_nothing_lost(road)
    assert_first_passes_in_order(road)
    assert_versions_never_fall(road)


def test_a_worker_that_was_frozen_comes_back(road: Road, make_worker: MakeWorker) -> None:
    """Its partitions go to its fellow; when it wakes up it joins anew, and nothing is lost."""
    workers = [make_worker(name) for name in ("one", "two")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.wait_ready()
    workers[0].send(signal.SIGSTOP)
    road.write(disordered(3000, 300, seed=6))
    other = workers[1]
    until(lambda: other.keep_running() and road.unjudged() == 0, 90, lambda: f"taken over; {other.log[-3000:]}")
    workers[0].send(signal.SIGCONT)
    road.write(disordered(3000, 300, seed=7, first=3000))
    until(lambda: all(worker.keep_running() for worker in workers) and road.unjudged() == 0, 90, "all judged")
    assert_nothing_lost(road)
    assert_first_passes_in_order(road)
