"""The supervisor: what dies comes back, whatever its starts do, until it is stopped."""

import threading
import time

from tallyhook.errors import TallyhookError
from tallyhook.operations.supervisor import Supervisor


class Mortal:
    """A unit that dies when told, and whose next starts may fail."""

    name = "mortal"
    pid = None

    def __init__(self, failing_starts: int = 0) -> None:
        self.alive = threading.Event()
        self.alive.set()
        self.failing_starts, self.starts, self.stopped = failing_starts, 0, False

    def start(self) -> None:
        """Fails as often as it was made to."""
        self.starts += 1
        if self.starts <= self.failing_starts:
            raise TallyhookError("not yet")
        self.alive.set()

    def stop(self) -> None:
        """For good."""
        self.stopped = True

    def running(self) -> bool:
        """Until it dies."""
        return self.alive.is_set()


def test_what_dies_is_started_again_until_a_start_succeeds() -> None:
    """Two failing starts do not end the watching; the change is told once, after the start that worked."""
    changed = threading.Event()
    unit, supervisor = Mortal(failing_starts=2), Supervisor(changed.set)
    supervisor.watch(unit)
    unit.alive.clear()
    assert changed.wait(10)
    assert unit.starts == 3
    assert supervisor.restarts["mortal"] == 1
    supervisor.stop([unit])
    assert unit.stopped


def test_nothing_is_started_again_after_the_stop() -> None:
    """A unit that ends because it was stopped stays down."""
    unit, supervisor = Mortal(), Supervisor(lambda: None)
    supervisor.watch(unit)
    supervisor.stop([unit])
    unit.alive.clear()
    time.sleep(0.5)  # longer than the supervisor's look: nothing may happen in it
    assert unit.starts == 0


def test_one_unit_that_does_not_stop_does_not_keep_the_others_up() -> None:
    """The failure is logged, the next is stopped all the same."""

    class Stubborn(Mortal):
        def stop(self) -> None:
            raise TallyhookError("no")

    other, supervisor = Mortal(), Supervisor(lambda: None)
    supervisor.stop([Stubborn(), other])
    assert other.stopped


def test_an_error_of_ours_does_not_end_the_watching() -> None:
    """A start that fails with OSError, and a change that cannot be told, are followed by the next restart."""

    class Unlucky(Mortal):
        def start(self) -> None:
            self.starts += 1
            if self.starts == 1:
                raise OSError("no space left")
            self.alive.set()

    told: list[int] = []
    twice = threading.Event()

    def tell() -> None:
        told.append(1)
        if len(told) == 2:
            twice.set()
        raise FileExistsError("the ready file's folder is gone")

    unit, supervisor = Unlucky(), Supervisor(tell)
    supervisor.watch(unit)
    unit.alive.clear()
    while not told:
        threading.Event().wait(0.05)
    unit.alive.clear()
    assert twice.wait(10)
    assert unit.starts == 3
    supervisor.stop([unit])
