"""Ctrl-C and SIGTERM for commands that finish what is under way before they end."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def signals_set(stopping: threading.Event) -> Iterator[None]:
    """SIGINT and SIGTERM set the event: an exception would be lost inside librdkafka's callbacks."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
