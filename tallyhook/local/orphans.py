"""Finds and ends servers that a crash left behind, by the data they work on; never another's process."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tallyhook.errors import LocalStackError

POLL_SECONDS = 0.05
KILL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class FoundProcess:
    """A process of this machine; `cwd` is None where the system does not tell."""

    pid: int
    argv: tuple[str, ...]
    cwd: Path | None


# Where working directories can be read, the backends of a killed postmaster can be told from others.
SEES_WORKING_DIRECTORIES = Path("/proc/self/cwd").exists()
Belongs = Callable[[FoundProcess], bool]


def processes() -> Iterator[FoundProcess]:
    """Every living process that can be looked at, zombies left out."""
    proc = Path("/proc")
    if not (proc / "self" / "cmdline").exists():
        yield from _processes_by_ps()
        return
    for entry in proc.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            raw = (entry / "cmdline").read_bytes()
            if not raw:
                continue
            argv = tuple(part.decode(errors="replace") for part in raw.rstrip(b"\0").split(b"\0"))
            yield FoundProcess(int(entry.name), argv, _cwd(entry))


def end_orphans(belongs: Belongs, stop_signal: int, stop_seconds: float) -> list[int]:
    """Asks those that belong to end, kills them after `stop_seconds`; returns their pids when all are gone.

    Raises LocalStackError that names those that remain, which may belong to another user.
    """
    found = {process.pid for process in processes() if belongs(process)}
    _signal_all(found, stop_signal)
    left = _wait_gone(belongs, stop_seconds)
    if left:
        _signal_all(left, signal.SIGKILL)
        left = _wait_gone(belongs, KILL_SECONDS)
    if left:
        raise LocalStackError(
            f"an earlier server still works on this data and cannot be ended: process {sorted(left)}; "
            "end it by hand, then start again"
        )
    return sorted(found)


def _signal_all(pids: set[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _wait_gone(belongs: Belongs, seconds: float) -> set[int]:
    deadline = time.monotonic() + seconds
    while True:
        left = {process.pid for process in processes() if belongs(process)}
        if not left or time.monotonic() >= deadline:
            return left
        time.sleep(POLL_SECONDS)


def _cwd(entry: Path) -> Path | None:
    try:
        return (entry / "cwd").readlink()
    except OSError:
        return None


def _processes_by_ps() -> Iterator[FoundProcess]:
    listing = subprocess.run(
        ["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, timeout=10, check=False
    )
    for line in listing.stdout.splitlines():
        number, _, command = line.strip().partition(" ")
        if number.isdigit() and int(number) != os.getpid():
            yield FoundProcess(int(number), tuple(command.split(" ")), None)
