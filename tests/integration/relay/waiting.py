"""Awaiting a condition instead of sleeping."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(what: str, condition: Callable[[], T], seconds: float = 20.0, every_seconds: float = 0.02) -> T:
    """The first true value of a condition; fails with `what` when there is none in time."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what} (last: {found!r})")
        time.sleep(every_seconds)
