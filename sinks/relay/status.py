"""What the relay's threads tell each other and its health pages."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import structlog

from sinks.relay.position import Position
from tallyhook.errors import DatabaseUnavailable, KafkaUnavailable, SchemaMismatch, TallyhookError

T = TypeVar("T")

RETRY_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0)
"""Waits between attempts while a dependency is away; the last one repeats."""


class Stopping(Exception):
    """The process is to end; whatever is being waited for no longer matters."""


class Status:
    """The state of one relay process. Every method may be called from any thread.

    Attributes:
        sent: the last row sent, by partition; replaced as a whole after each commit. Empty until it is known.
    """

    def __init__(self) -> None:
        self.sent: Mapping[int, Position] = {}
        self._stop = threading.Event()
        self._stopped_at: float | None = None
        self._failure: TallyhookError | None = None
        self._halted: TallyhookError | None = None
        self._trouble: str | None = None

    @property
    def stopping(self) -> bool:
        """Whether the process is to end."""
        return self._stop.is_set()

    @property
    def stopping_seconds(self) -> float:
        """How long ago the end was asked for; 0 when it was not."""
        return 0.0 if self._stopped_at is None else time.monotonic() - self._stopped_at

    @property
    def halted(self) -> bool:
        """Whether the work was given up until somebody looks at it."""
        return self._halted is not None

    def stop(self) -> None:
        """Asks the process to end."""
        if self._stopped_at is None:
            self._stopped_at = time.monotonic()
        self._stop.set()

    def fail(self, failure: TallyhookError) -> None:
        """Ends the process because it must be replaced; the first failure is the one that is told."""
        self._failure = self._failure or failure
        self.stop()

    def check(self) -> None:
        """Raises the failure another thread met."""
        if self._failure is not None:
            raise self._failure

    def halt(self, reason: TallyhookError) -> None:
        """The work stops here, the process stays and says why."""
        self._halted = reason

    def mended(self) -> None:
        """What stopped the work is no more."""
        self._halted = None

    def trouble(self, reason: str | None) -> None:
        """What the work waits for; None once it goes on."""
        self._trouble = reason

    def pause(self, seconds: float) -> None:
        """Waits; returns early when the process is to end."""
        self._stop.wait(seconds)

    def not_ready(self) -> Sequence[str]:
        """Why the relay cannot do its work; empty when it can, or stands by for another one that does."""
        if self._halted is not None:
            return [str(self._halted)]
        if self._trouble is not None:
            return [self._trouble]
        return ["the relay is stopping"] if self.stopping else []


def patiently(status: Status, log: structlog.stdlib.BoundLogger, attempt: Callable[[], T]) -> T:
    """Repeats an attempt while Kafka or PostgreSQL is away or not yet prepared; raises Stopping when asked to end."""
    failures = 0
    while True:
        status.check()
        if status.stopping:
            raise Stopping
        try:
            result = attempt()
        except (KafkaUnavailable, DatabaseUnavailable, SchemaMismatch) as failure:
            if failures == 0:
                log.warning("waiting for a dependency", reason=str(failure))
            status.trouble(str(failure))
            status.pause(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
            failures += 1
        else:
            if failures:
                status.trouble(None)
                log.info("going on", attempts=failures + 1)
            return result
