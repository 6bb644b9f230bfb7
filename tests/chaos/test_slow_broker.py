"""A broker that answers slowly, and now and then not in time: the door says so before the sender gives up."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.chaos.load import make_load
from tests.chaos.posting import check_all, posted
from tests.chaos.tally import TALLY
from tests.integration.ingress.freezing import frozen
from tests.running import RunningPipeline, await_true

OBJECTS, LATE_BY, RATE_A_SECOND = 200, 150, 25
DEADLINE_SECONDS, SPARE_SECONDS = 2.0, 3.0
SLOW_SECONDS, STILL_SECONDS, TURNING_SECONDS = 8.0, 0.25, 0.05
FREEZES = 3


@pytest.mark.chaos
@pytest.mark.timeout(400)
def test_a_broker_that_answers_slowly(tmp_path: Path, seed: int) -> None:
    """A sixth of its time is left to it, thrice none for longer than the deadline: 200 or 503 in time, all exact."""
    chance = random.Random(seed)
    load = make_load(seed, OBJECTS, late_by=LATE_BY)
    deadline = str(DEADLINE_SECONDS)
    with RunningPipeline(tmp_path / "state", TALLYHOOK_INGRESS_DELIVERY_TIMEOUT_SECONDS=deadline) as pipeline:
        broker = pipeline.ready["pids"]["kafka"]
        with posted(pipeline, load, RATE_A_SECOND) as gateway:
            for _ in range(FREEZES):
                passed = gateway.sent
                await_true(lambda p=passed: gateway.sent > p + 50, 60, "traffic")  # type: ignore[misc]
                _slow(broker, chance)
                refused = gateway.answers[503]
                with frozen(broker):
                    await_true(lambda r=refused: gateway.answers[503] > r, 60, "a refusal")  # type: ignore[misc]
                TALLY.disturbances["slow broker, then a frozen one"] += 1
        assert set(gateway.answers) == {200, 503}
        assert gateway.without_retry_after == 0
        assert gateway.slowest_seconds < DEADLINE_SECONDS + SPARE_SECONDS
        check_all(pipeline)


def _slow(pid: int, chance: random.Random) -> None:
    """Stops and continues it by turns: the stops are the slowness."""
    until = time.monotonic() + SLOW_SECONDS
    while time.monotonic() < until:
        with frozen(pid):
            time.sleep(chance.uniform(0.5, 1.5) * STILL_SECONDS)
        time.sleep(TURNING_SECONDS)
    os.kill(pid, signal.SIGCONT)
