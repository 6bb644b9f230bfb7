"""The gateway's own time: it runs faster than the wall's, so that 92 hours of retries fit into minutes."""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, Protocol

from tallyhook.clock import Clock
from tallyhook.errors import UsageError

MAX_FACTOR: Final = 1_000_000
MAX_ELAPSED: Final = timedelta(days=36_500)
"""Where the time stands still: a simulator that is left alone for days must not run out of dates."""


class Pace(Protocol):
    """Tells the virtual time and waits in it."""

    def now(self) -> datetime:
        """The virtual moment, aware, in UTC; never goes backwards."""
        ...

    async def wait(self, until: datetime | None, changed: asyncio.Event) -> None:
        """Returns at the virtual moment, or when `changed` is set; None waits for `changed` alone."""
        ...


class ScaledTime:
    """Virtual time that runs `factor` times as fast as the wall's, from the moment of `start` on.

    Args:
        started_at: the virtual moment at which it begins.
        factor: virtual seconds a wall second.
        clock: the wall's.

    Raises:
        UsageError: the factor is out of bounds.
    """

    def __init__(self, started_at: datetime, factor: float, clock: Clock) -> None:
        if not 1 <= factor <= MAX_FACTOR:
            raise UsageError(f"time factor {factor:g}: must be 1..{MAX_FACTOR} (virtual seconds a wall second)")
        self._started_at, self._factor, self._clock = started_at, factor, clock
        self._begun: float | None = None

    def start(self) -> None:
        """Lets the time run; before, it stands at its beginning."""
        self._begun = self._clock.monotonic_seconds()

    def now(self) -> datetime:
        """The virtual moment."""
        if self._begun is None:
            return self._started_at
        elapsed = (self._clock.monotonic_seconds() - self._begun) * self._factor
        return self._started_at + min(timedelta(seconds=min(elapsed, MAX_ELAPSED.total_seconds())), MAX_ELAPSED)

    async def wait(self, until: datetime | None, changed: asyncio.Event) -> None:
        """Returns at the virtual moment, or when `changed` is set."""
        seconds = None if until is None else (until - self.now()).total_seconds() / self._factor
        if seconds is not None and seconds <= 0:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await changed.wait()
