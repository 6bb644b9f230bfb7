"""Time is handed in: what needs it takes a `Clock`, and tests hand in another."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for what is stored, monotonic time for what is measured."""

    def now(self) -> datetime:
        """The present moment, aware, in UTC."""
        ...

    def monotonic_seconds(self) -> float:
        """Seconds since an arbitrary moment; never goes backwards."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        """The present moment, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic_seconds(self) -> float:
        """Seconds since an arbitrary moment; never goes backwards."""
        return time.monotonic()
