"""When a worker counts as stuck."""

from streams.watchdog import FROZEN_SECONDS, ONE_PARTITION_FACTOR, Stall

STALL_SECONDS = 30.0
TICK_SECONDS = 2.0


def seconds_until_end(
    stall: Stall, seconds: float, *, moves: bool, waiting: dict[int, int], commits: dict[int, int]
) -> float | None:
    """After how long the worker is ended, looking every two seconds; None if it is not."""
    now, step = 0.0, 0
    while now <= seconds:
        step += 1
        if stall.observe(now, waiting, (step if moves else 7, 0), commits) is not None:
            return now
        now += TICK_SECONDS
    return None


def test_nothing_moves_though_work_waits() -> None:
    """It ends after the bound, not before."""
    ended = seconds_until_end(Stall(STALL_SECONDS), 100, moves=False, waiting={0: 5}, commits={0: 9})
    assert ended is not None
    assert STALL_SECONDS < ended <= STALL_SECONDS + TICK_SECONDS


def test_idle_is_not_stuck() -> None:
    """Without lag there is nothing to move."""
    assert seconds_until_end(Stall(STALL_SECONDS), 500, moves=False, waiting={}, commits={0: 9}) is None


def test_progress_keeps_it_alive() -> None:
    """A long replay of the changelog counts, too."""
    assert seconds_until_end(Stall(STALL_SECONDS), 100, moves=True, waiting={0: 5}, commits={}) is None


def test_one_partition_that_stands_still_is_noticed() -> None:
    """Others may move: a partition whose commit does not is stuck all the same, with more patience."""
    bound = STALL_SECONDS * ONE_PARTITION_FACTOR
    ended = seconds_until_end(Stall(STALL_SECONDS), 200, moves=True, waiting={1: 5}, commits={0: 9, 1: 3})
    assert ended is not None
    assert bound < ended <= bound + TICK_SECONDS


def test_the_clock_stands_still_while_the_broker_is_away() -> None:
    """What nobody could have done is not held against the worker."""
    stall = Stall(STALL_SECONDS)
    for second in range(0, 200, 2):
        if second % 20 == 0:
            stall.reset()
        assert stall.observe(second, {0: 1}, (7, 0), {0: 9}) is None


def test_a_frozen_process_starts_anew() -> None:
    """After SIGSTOP and SIGCONT the worker gets its full time again."""
    stall = Stall(STALL_SECONDS)
    assert stall.observe(0, {0: 1}, (7, 0), {0: 9}) is None
    assert stall.observe(STALL_SECONDS + FROZEN_SECONDS, {0: 1}, (7, 0), {0: 9}) is None


def test_an_assignment_that_changes_is_progress() -> None:
    """A rebalance moves something: the bound counts from the last one."""
    stall = Stall(STALL_SECONDS)
    for second in range(0, 60, 2):
        assert stall.observe(second, {0: 1}, (7, 0), {second // 20: 9}) is None
