"""Keeps units running: what dies or stops answering is started again, without a limit, with a growing pause."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tallyhook.clock import Clock, SystemClock
from tallyhook.errors import TallyhookError
from tallyhook.logs import logger

_log = logger(__name__)

LOOK_SECONDS = 0.2
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 5.0
STEADY_SECONDS = 30.0
"""A unit that lived so long starts again with the first pause."""


class Unit(Protocol):
    """Something that runs and can be started again: a server of the local stack or a stage."""

    @property
    def name(self) -> str:
        """For logs and the ready file."""
        ...

    @property
    def pid(self) -> int | None:
        """Its process, where it has one."""
        ...

    def start(self) -> None:
        """Starts it; may return before it is ready."""
        ...

    def stop(self) -> None:
        """Stops it cleanly within a bound, else kills it."""
        ...

    def running(self) -> bool:
        """Whether it lives and answers."""
        ...


@dataclass
class Supervisor:
    """One thread a unit watches it and starts it again.

    A pause never ends for good: while a dependency is away every start may fail, and the next must still come.

    Args:
        on_change: called after each restart, for instance to write new pids.
    """

    on_change: Callable[[], None]
    clock: Clock = field(default_factory=SystemClock)
    restarts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def watch(self, unit: Unit) -> None:
        """Watches a unit that has been started."""
        thread = threading.Thread(target=self._watch, args=(unit,), name=f"watch-{unit.name}", daemon=True)
        self._threads.append(thread)
        self.restarts[unit.name] = 0
        thread.start()

    def stop(self, units: Sequence[Unit]) -> None:
        """Ends the watching, then stops the units in the order given; one that fails does not keep the others up."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout=60)
        for unit in units:
            try:
                unit.stop()
            except Exception:  # noqa: BLE001  the others must be stopped all the same
                _log.exception("unit did not stop", unit=unit.name)

    def _watch(self, unit: Unit) -> None:
        pause, since = FIRST_PAUSE_SECONDS, self.clock.monotonic_seconds()
        while not self._stopping.wait(LOOK_SECONDS):
            if self._is_running(unit):
                continue
            if self.clock.monotonic_seconds() - since > STEADY_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            _log.warning("unit ended, starting it again", unit=unit.name, pause_seconds=pause)
            if self._stopping.wait(pause):
                return
            pause, since = min(pause * 2, LONGEST_PAUSE_SECONDS), self.clock.monotonic_seconds()
            self._start(unit)

    def _is_running(self, unit: Unit) -> bool:
        try:
            return unit.running()
        except Exception:  # noqa: BLE001  what cannot be asked may still run; the next look tells
            _log.exception("unit cannot be asked whether it runs", unit=unit.name)
            return True

    def _start(self, unit: Unit) -> None:
        """Whatever goes wrong here, the watching goes on: a full disk today must not mean no restart tomorrow."""
        try:
            unit.start()
        except TallyhookError as failure:
            _log.error("unit did not start", unit=unit.name, why=str(failure))
            return
        except Exception:  # noqa: BLE001  a full disk is no reason to give the unit up
            _log.exception("unit did not start", unit=unit.name)
            return
        self.restarts[unit.name] += 1
        try:
            self.on_change()
        except Exception:  # noqa: BLE001  the unit runs, whoever could not be told
            _log.exception("the restart could not be told", unit=unit.name)
