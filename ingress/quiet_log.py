"""A log that a flood of refusals cannot flood."""

from structlog.stdlib import BoundLogger

from tallyhook.clock import Clock

WINDOW_SECONDS = 1.0
LINES_A_WINDOW = 20


class QuietLog:
    """Writes the first lines of each second and counts the others; the next line tells how many there were."""

    def __init__(self, log: BoundLogger, clock: Clock) -> None:
        self._log, self._clock = log, clock
        self._window_started_at = float("-inf")
        self._lines = self._left_out = 0

    def info(self, event: str, **facts: object) -> None:
        """One record, or one more that is left out."""
        now = self._clock.monotonic_seconds()
        if now - self._window_started_at >= WINDOW_SECONDS:
            self._window_started_at, self._lines = now, 0
        if self._lines >= LINES_A_WINDOW:
            self._left_out += 1
            return
        self._lines += 1
        if self._left_out:
            facts["left_out"], self._left_out = self._left_out, 0
        self._log.info(event, **facts)
