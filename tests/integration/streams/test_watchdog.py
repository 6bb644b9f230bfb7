"""A worker that hangs ends itself, and a restart goes on."""

import signal
import time
from pathlib import Path

from streams.ending import ENDED_BY_ITSELF
from tests.integration.streams.conftest import MakeWorker
from tests.integration.streams.traffic import Road, assert_first_passes_in_order, assert_nothing_lost, disordered
from tests.integration.streams.worker import Worker, until

STALL_SECONDS = 8
SLACK_SECONDS = 20.0  # start of the process, two looks of the watchdog


def hanging(make_worker: MakeWorker, program: str, flag: Path) -> Worker:
    """A worker that hangs once."""
    return make_worker(
        "hanging",
        program=("-m", f"tests.integration.streams.programs.{program}", str(flag)),
        environment={"TALLYHOOK_STREAM_STALL_SECONDS": str(STALL_SECONDS), "TALLYHOOK_STREAM_BATCH_EVENTS": "100"},
    )


def test_the_end_of_the_group_coordination_ends_the_process(
    road: Road, make_worker: MakeWorker, tmp_path: Path
) -> None:
    """A bootstrap that meets a fenced broker: aiokafka gives up for good, and only the watchdog notices."""
    road.write(disordered(500, 50, seed=1))
    worker = hanging(make_worker, "no_brokers", tmp_path / "flag")
    worker.start()
    began = time.monotonic()
    assert worker.wait(90) == ENDED_BY_ITSELF
    assert time.monotonic() - began < STALL_SECONDS + SLACK_SECONDS
    assert "the group coordination has ended" in worker.log
    assert "Did we not perform bootstrap?" in worker.log

    worker.start()
    until(lambda: road.unjudged() == 0, 90, "the restart goes on")
    assert worker.end(signal.SIGTERM) == 0
    assert_nothing_lost(road)


def test_a_blocked_event_loop_ends_the_process(road: Road, make_worker: MakeWorker, tmp_path: Path) -> None:
    """The broker answers, events wait, nothing moves: it ends within the bound and nothing was acked."""
    road.write(disordered(2000, 50, seed=1))
    worker = hanging(make_worker, "stuck_loop", tmp_path / "flag")
    worker.start()
    until((tmp_path / "flag").exists, 60, "the loop is blocked")
    began = time.monotonic()
    assert worker.ask("/livez")[0] == 200  # a stall is no reason before its time
    assert worker.wait(90) == ENDED_BY_ITSELF
    assert time.monotonic() - began < STALL_SECONDS + SLACK_SECONDS
    assert "stalled: nothing moved" in worker.log

    worker.start()
    until(lambda: road.unjudged() == 0, 90, "the restart goes on")
    assert worker.end(signal.SIGTERM) == 0
    assert_nothing_lost(road)
    assert_first_passes_in_order(road)


def test_health_pages_tell_when_it_works(road: Road, worker: Worker) -> None:
    """Not ready before the partitions are recovered, ready and live after, with lag by partition in the metrics."""
    worker.start()
    until(lambda: worker.ask("/livez")[0] == 200, 60, "health pages are up")
    worker.wait_ready()
    assert worker.ask("/livez")[0] == 200
    road.write(disordered(100, 10, seed=1))
    until(lambda: 'tallyhook_stream_lag_events{partition="0"}' in worker.ask("/metrics")[1], 60, "lag is shown")
    assert worker.end(signal.SIGTERM) == 0
