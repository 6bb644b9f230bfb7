"""Adds up the bytes of several downloads at once and reports them at a bearable rate."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock

from tallyhook.errors import LocalStackError
from tallyhook.local.service import Progress, Report

REPORT_SECONDS = 0.1


class DownloadProgress:
    """Progress of one step over many files, whose parts are counted as they arrive.

    When `cancelled` is set, the next part of any file raises LocalStackError.
    """

    def __init__(self, step: str, message: str, total_bytes: int, report: Report, cancelled: Event) -> None:
        self.step = step
        self.message = message
        self.total_bytes = total_bytes
        self._report = report
        self._cancelled = cancelled
        self._bytes_of_file: dict[str, int] = {}
        self._counting = Lock()
        self._reported_at = 0.0

    @contextmanager
    def file(self, name: str, _size_bytes: int) -> Iterator[Callable[[int], None]]:
        """What jgo calls around a file: yields the function that takes the size of each part."""
        with self._counting:
            self._bytes_of_file[name] = 0  # A file that is fetched again counts once.
        yield lambda part_bytes: self._arrived(name, part_bytes)

    def tell(self) -> None:
        """Reports what has arrived by now."""
        with self._counting:
            self._reported_at = time.monotonic()
            done = sum(self._bytes_of_file.values())
        self._report(Progress(self.step, self.message, done, self.total_bytes))

    def demand_going_on(self) -> None:
        """Raises LocalStackError when the download is to end."""
        if self._cancelled.is_set():
            raise LocalStackError("the download was given up because the stack is being stopped")

    def _arrived(self, name: str, part_bytes: int) -> None:
        self.demand_going_on()
        with self._counting:
            self._bytes_of_file[name] += part_bytes
            due = time.monotonic() - self._reported_at >= REPORT_SECONDS
        if due:
            self.tell()
