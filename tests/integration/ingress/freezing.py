"""A process that does nothing for a while, as one whose machine hangs."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STOP_SECONDS = 30.0


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """SIGSTOP, and SIGCONT at the end; begins once every thread stands still.

    One thread takes the signal and stops the others: on a busy machine they go on for a while, and a broker would
    confirm records yet.
    """
    os.kill(pid, signal.SIGSTOP)
    try:
        deadline = time.monotonic() + STOP_SECONDS
        while not _stands_still(pid):
            assert time.monotonic() < deadline, f"process {pid} does not stop"
            time.sleep(0.01)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _stands_still(pid: int) -> bool:
    states = Path(f"/proc/{pid}/task").glob("*/stat")
    # The state is the first field behind the name, which stands in brackets and may hold anything.
    return all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in states)
