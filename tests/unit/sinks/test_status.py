"""What the health pages say."""

from datetime import UTC, datetime

from sinks.status import DATABASE_SILENT_SECONDS, SILENT_SECONDS, STOPPED, Status


class SteppedClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1.0

    def now(self) -> datetime:
        """A fixed moment."""
        return datetime(2026, 5, 1, tzinfo=UTC)

    def monotonic_seconds(self) -> float:
        """The seconds set."""
        return self.seconds


def test_a_loop_that_does_not_turn_is_not_live() -> None:
    """After a minute without a beat the process should be replaced."""
    clock = SteppedClock()
    status = Status(clock)
    status.beat("loop")
    clock.seconds += SILENT_SECONDS
    assert status.not_live() == []
    clock.seconds += 1
    assert status.not_live() == ["loop has not turned for 61 s"]
    status.beat("loop")
    assert status.not_live() == []


def test_waiting_for_the_database_is_no_hang() -> None:
    """A frozen database makes the sink unready after a minute and is waited for; a quarter of an hour is a hang."""
    clock = SteppedClock()
    status = Status(clock)
    status.beat("loop")
    with status.asking_database("loop"):
        clock.seconds += SILENT_SECONDS + 1
        assert status.not_live() == []
        assert status.not_ready() == ["loop: the database has not answered for 61 s"]
        clock.seconds += DATABASE_SILENT_SECONDS
        assert len(status.not_live()) == 1
    assert (status.not_live(), status.not_ready()) == ([], [])


def test_reasons_are_told_until_they_are_gone() -> None:
    """Each loop has its own; the same reason again is no news."""
    status = Status(SteppedClock())
    assert status.trouble("a", "kafka", "is away")
    assert not status.trouble("a", "kafka", "is away")
    assert status.trouble("b", "database", "is away")
    assert status.not_ready() == ["a: is away", "b: is away"]
    assert status.trouble("a", "kafka", None)
    assert status.not_ready() == ["b: is away"]


def test_what_only_a_person_can_mend_is_told_apart() -> None:
    """A dependency that is away stops no loop; what is stopped is told by loop until it goes on."""
    status = Status(SteppedClock())
    status.trouble("a", "kafka", "is away")
    assert status.stopped() == frozenset()
    status.trouble("b", STOPPED, "records are gone")
    assert status.stopped() == {"b"}
    status.trouble("b", STOPPED, None)
    assert status.stopped() == frozenset()
