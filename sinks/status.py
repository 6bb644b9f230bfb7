"""What the sink's threads tell its health pages."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tallyhook.clock import Clock

SILENT_SECONDS = 60.0
"""A loop turns several times a second; a minute without a turn is a hang."""

DATABASE_SILENT_SECONDS = 900.0
"""A statement may wait long for a frozen database or a large lock; starting anew would not help it."""


STOPPED = "stopped"
"""The subject of reasons that only a person can mend."""


class Status:
    """Reasons not to be ready, by loop and subject, and the loops' heartbeats. Every method is safe from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._reasons: dict[tuple[str, str], str] = {}
        self._beats: dict[str, float] = {}
        self._asking: dict[str, float] = {}

    def beat(self, loop: str) -> None:
        """The loop turned once more."""
        with self._lock:
            self._beats[loop] = self._clock.monotonic_seconds()

    @contextmanager
    def asking_database(self, loop: str) -> Iterator[None]:
        """The loop waits for PostgreSQL meanwhile."""
        with self._lock:
            self._asking[loop] = self._clock.monotonic_seconds()
        try:
            yield
        finally:
            with self._lock:
                self._asking.pop(loop, None)
                self._beats[loop] = self._clock.monotonic_seconds()

    def trouble(self, loop: str, subject: str, reason: str | None) -> bool:
        """Notes why a loop cannot work, or with None that it can; gives whether that is news."""
        with self._lock:
            before = self._reasons.pop((loop, subject), None)
            if reason is not None:
                self._reasons[(loop, subject)] = reason
            return before != reason

    def stopped(self) -> frozenset[str]:
        """Which loops wait for a person."""
        with self._lock:
            return frozenset(loop for loop, subject in self._reasons if subject == STOPPED)

    def not_ready(self) -> Sequence[str]:
        """Why the sink cannot do its work; empty when it can."""
        now = self._clock.monotonic_seconds()
        with self._lock:
            reasons = [f"{loop}: {reason}" for (loop, _), reason in sorted(self._reasons.items())]
            reasons += [
                f"{loop}: the database has not answered for {now - since:.0f} s"
                for loop, since in self._asking.items()
                if now - since > SILENT_SECONDS
            ]
        return reasons

    def not_live(self) -> Sequence[str]:
        """Which loops hang; a dependency that is away is no reason."""
        now = self._clock.monotonic_seconds()
        with self._lock:
            hanging = []
            for loop, beat in self._beats.items():
                since = self._asking.get(loop, beat)
                bound = DATABASE_SILENT_SECONDS if loop in self._asking else SILENT_SECONDS
                if now - since > bound:
                    hanging.append(f"{loop} has not turned for {now - since:.0f} s")
            return hanging
