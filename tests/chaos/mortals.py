"""Which failpoints a running pipeline dies at, and how a test waits for a death and the return."""

import os
import random
import signal
import time
from pathlib import Path
from typing import get_args

from tallyhook.failpoint_arming import arm_in, armed
from tallyhook.failpoints import ALLOWED, ALLOWED_VARIABLE, POINTS_VARIABLE, Failpoint
from tests.chaos.tally import TALLY
from tests.running import RunningPipeline, await_true

FAILPOINTS: tuple[Failpoint, ...] = get_args(Failpoint)
AT_START = frozenset({"sink.claimed", "relay.lease_taken", "relay.fenced_others", "relay.progress_read"})
"""Reached when a process begins, so that the one that runs must go first."""

SELDOM = frozenset({"sink.letters_written", "sink.letters_committed", "sink.correlations_inserted"})
"""Reached by a few records only."""

EVENTS_PASSED, BATCHES_PASSED = 25, 2


def variables(folder: Path) -> dict[str, str]:
    """What lets the processes of a pipeline die where the folder says, with time-outs that suit short lives."""
    return {
        POINTS_VARIABLE: f"@{folder}",
        ALLOWED_VARIABLE: ALLOWED,
        "TALLYHOOK_RELAY_LEASE_SECONDS": "3",
        "TALLYHOOK_RELAY_TRANSACTION_TIMEOUT_SECONDS": "15",
    }


def stage_of(failpoint: Failpoint) -> str:
    """The stage that dies there."""
    return failpoint.split(".")[0]


def arm(folder: Path, failpoint: Failpoint, chance: random.Random) -> None:
    """Lets the next process die there after a few passes."""
    most = EVENTS_PASSED if stage_of(failpoint) == "ingress" else BATCHES_PASSED
    passes = 0 if failpoint in AT_START | SELDOM else chance.randint(0, most)
    arm_in(folder, failpoint, str(passes))


def kill_now(pipeline: RunningPipeline, unit: str) -> bool:
    """kill -9 of the process that the ready file names; false when it is gone already."""
    pid = pipeline.ready["pids"][unit]
    try:
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    TALLY.at_random[unit] += pid is not None
    return pid is not None


def die_at(
    pipeline: RunningPipeline,
    folder: Path,
    failpoint: Failpoint,
    chance: random.Random,
    *,
    death_seconds: float,
    back_seconds: float,
) -> float:
    """Lets a process die there, after kill -9 where only a new one gets there; the seconds until another does its work.

    Args:
        death_seconds: most that is waited for the death.
        back_seconds: most that is waited for the successor, and once more for its readiness.
    """
    stage = stage_of(failpoint)
    before = pipeline.ready["pids"][stage]
    arm(folder, failpoint, chance)
    if failpoint in AT_START:
        await_true(lambda: kill_now(pipeline, stage), back_seconds, f"a {stage} to kill")
    await_death(folder, failpoint, death_seconds)
    TALLY.at_failpoints[failpoint] += 1
    return await_return(pipeline, stage, before, back_seconds)


def await_death(folder: Path, failpoint: Failpoint, timeout_seconds: float) -> None:
    """Waits until a process died there."""
    await_true(lambda: failpoint not in armed(folder), timeout_seconds, f"a death at {failpoint}")


def await_return(pipeline: RunningPipeline, unit: str, before: int | None, timeout_seconds: float) -> float:
    """Waits until another process than `before` does the unit's work; gives the seconds that took."""
    began = time.monotonic()
    await_true(lambda: pipeline.ready["pids"][unit] not in (before, None), timeout_seconds, f"a new {unit}")
    await_true(lambda: pipeline.answers(unit), timeout_seconds, f"{unit} to answer")
    return time.monotonic() - began
