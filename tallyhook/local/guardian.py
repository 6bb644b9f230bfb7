"""A tiny process that keeps one server: when its parent goes, however it goes, the server is stopped cleanly.

The parent runs this file by its path with an isolated interpreter, so it needs nothing but the standard library
and starts in a few hundredths of a second. Standard input is the line to the parent: first one line of JSON (see
`Orders`), then the word `kill`, or the end of file, which means "stop it". Standard output carries one line
back: `pid N` or `error TEXT`. The exit code is the server's own, or 128 plus the signal that ended it.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

PARENT_CHECK_SECONDS = 1.0
CANNOT_START = 127
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Orders:
    """What the parent asks for; `uid` and `gid` are None to keep the parent's user."""

    parent_pid: int
    argv: list[str]
    env: dict[str, str]
    log_path: str
    cwd: str | None
    uid: int | None
    gid: int | None
    stop_signal: int
    stop_seconds: float
    orphan_signal: int


class Guardian:
    """Starts the server, waits for its end or for the parent's, and passes on how it ended."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.wake_read, self.wake_write = os.pipe()
        os.set_blocking(self.wake_read, False)
        os.set_blocking(self.wake_write, False)
        self.ended_by_signal = False

    def run(self) -> int:
        """Returns the exit code for this process."""
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, self._note)
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        try:
            server = self._spawn()
        except (OSError, subprocess.SubprocessError) as failure:
            _say(f"error {failure}")
            return CANNOT_START
        _say(f"pid {server.pid}")
        self._watch(server)
        return self._reap(server)

    def _note(self, number: int, _frame: object) -> None:
        if number in (signal.SIGTERM, signal.SIGHUP):
            self.ended_by_signal = True

    def _spawn(self) -> "subprocess.Popen[bytes]":
        orders = self.orders
        log = os.open(orders.log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            return subprocess.Popen(
                orders.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=orders.env,
                cwd=orders.cwd,
                user=orders.uid,
                group=orders.gid,
                extra_groups=[] if orders.uid is not None else None,
                process_group=0,
                preexec_fn=_die_with(os.getpid(), orders.orphan_signal),  # noqa: PLW1509 - this process has one thread
            )
        finally:
            os.close(log)

    def _watch(self, server: "subprocess.Popen[bytes]") -> None:
        """Waits until the server has ended, ending it when the parent asks or is gone."""
        commands = b""
        parent_open = True
        stop_deadline: float | None = None
        while not _has_ended(server):
            wait_seconds = PARENT_CHECK_SECONDS
            if stop_deadline is not None:
                wait_seconds = min(wait_seconds, max(0.0, stop_deadline - time.monotonic()))
            readable, _, _ = select.select([self.wake_read, *([0] if parent_open else [])], [], [], wait_seconds)
            if self.wake_read in readable:
                os.read(self.wake_read, 512)
            if 0 in readable:
                chunk = os.read(0, 512)
                parent_open = bool(chunk)
                commands = (commands + chunk)[-512:]
            if b"kill\n" in commands:
                server.send_signal(signal.SIGKILL)
                commands = b""
            abandoned = not parent_open or self.ended_by_signal or os.getppid() != self.orders.parent_pid
            if abandoned and stop_deadline is None:
                server.send_signal(self.orders.stop_signal)
                stop_deadline = time.monotonic() + self.orders.stop_seconds
            elif stop_deadline is not None and time.monotonic() >= stop_deadline:
                server.send_signal(signal.SIGKILL)
                stop_deadline = time.monotonic() + PARENT_CHECK_SECONDS

    def _reap(self, server: "subprocess.Popen[bytes]") -> int:
        # The server is dead but not yet reaped, so its process group still is its own: helpers it left go too.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(server.pid, signal.SIGKILL)
        code = server.wait()
        return code if code >= 0 else 128 - code


def _has_ended(server: "subprocess.Popen[bytes]") -> bool:
    """Looks without reaping where the system can (macOS could not before Python 3.13)."""
    if not hasattr(os, "waitid"):
        return server.poll() is not None
    return os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _die_with(guardian_pid: int, orphan_signal: int) -> Callable[[], None] | None:
    """What the server does before it becomes the server: it asks Linux to end it when this guardian dies.

    The request is bound to the thread that forked, which here is the only one, and is lost on a change of user,
    so it is made after that. Elsewhere than on Linux the next start looks for what was left.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def arrange() -> None:
        if prctl(PR_SET_PDEATHSIG, orphan_signal, 0, 0, 0) != 0 or os.getppid() != guardian_pid:
            os._exit(CANNOT_START)

    return arrange


def _say(line: str) -> None:
    # The parent may be gone already; the watch notices that by itself.
    with suppress(BrokenPipeError):
        os.write(1, line.replace("\n", " ").encode() + b"\n")


def _read_orders() -> Orders:
    line = bytearray()
    while not line.endswith(b"\n"):
        chunk = os.read(0, 1)
        if not chunk:
            raise SystemExit(CANNOT_START)
        line += chunk
    return Orders(**json.loads(line))


if __name__ == "__main__":
    raise SystemExit(Guardian(_read_orders()).run())
