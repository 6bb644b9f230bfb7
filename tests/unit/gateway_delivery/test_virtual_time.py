"""Virtual time: so many seconds a wall second, bounded, and waited for."""

import asyncio
from datetime import timedelta

import pytest

from tallyhook.errors import UsageError
from tallyhook.gateway.virtual_time import MAX_ELAPSED, ScaledTime
from tests.unit.gateway_delivery.stepping import START, SetClock


def test_it_runs_by_the_factor_from_its_start_on() -> None:
    """92 hours at 2,000 virtual seconds a wall second are 165.6 wall seconds."""
    clock = SetClock()
    time = ScaledTime(START, 2000, clock)
    clock.seconds = 5.0
    assert time.now() == START
    time.start()
    assert time.now() == START
    clock.seconds += 165.6
    assert abs(time.now() - START - timedelta(hours=92)) < timedelta(milliseconds=1)


def test_it_ends_before_the_dates_do() -> None:
    """A simulator that is left alone for months stands still at a last moment."""
    clock = SetClock()
    time = ScaledTime(START, 1_000_000, clock)
    time.start()
    clock.seconds = 1e9
    assert time.now() == START + MAX_ELAPSED


@pytest.mark.parametrize("factor", [0, 0.5, 1_000_001, float("nan"), float("inf")])
def test_a_factor_out_of_bounds_is_refused(factor: float) -> None:
    """1 to 1,000,000."""
    with pytest.raises(UsageError, match="time factor"):
        ScaledTime(START, factor, SetClock())


async def test_waiting_ends_at_the_moment_or_when_something_changed() -> None:
    """A moment that is past is not waited for; otherwise the event ends the wait, with and without a moment."""
    clock = SetClock()
    time = ScaledTime(START, 1, clock)
    time.start()
    clock.seconds = 100.0
    changed = asyncio.Event()
    await time.wait(START + timedelta(seconds=100), changed)
    for until in (None, START + timedelta(days=1)):
        waiting = asyncio.create_task(time.wait(until, changed))
        await asyncio.sleep(0)
        assert not waiting.done()
        changed.set()
        await asyncio.wait_for(waiting, 5)
        changed.clear()
    # A factor of a million makes a virtual day last 86 ms of the loop's own time.
    fast = ScaledTime(START, 1_000_000, clock)
    await asyncio.wait_for(fast.wait(START + timedelta(days=1), changed), 5)
