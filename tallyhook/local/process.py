"""One server process under a guardian: it ends with its supervisor, and Ctrl-C in the terminal passes it by."""

import json
import os
import pwd
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from select import select

from tallyhook.errors import LocalStackError

GUARDIAN = Path(__file__).with_name("guardian.py")
SPAWN_SECONDS = 20.0
GUARDIAN_GRACE_SECONDS = 5.0
LOG_ROTATE_BYTES = 16 * 1024 * 1024


class ManagedProcess:
    """Starts `argv` as the child of a guardian in a session of its own.

    `env` is the whole environment (None: this process's). `user` is an OS user to run as, which only root may
    ask for. Output goes to `log_path`, appended; a log above 16 MiB is moved aside to `.1` at a start.
    `stop_signal` asks for a clean end, after `stop_seconds` comes SIGKILL. `orphan_signal` is what the child
    gets if the guardian itself is killed.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        log_path: Path,
        stop_signal: int = signal.SIGTERM,
        stop_seconds: float = 20,
        user: str | None = None,
        cwd: Path | None = None,
        orphan_signal: int = signal.SIGKILL,
    ) -> None:
        self.name = name
        self.argv = [str(part) for part in argv]
        self.env = env
        self.log_path = log_path
        self.stop_signal = stop_signal
        self.stop_seconds = stop_seconds
        self.user = user
        self.cwd = cwd
        self.orphan_signal = orphan_signal
        self._pid: int | None = None
        self._guardian: subprocess.Popen[bytes] | None = None
        self._line = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The real child; None before the first start and after its end."""
        return self._pid if self.running() else None

    @property
    def guardian_pid(self) -> int | None:
        """The guardian; None while nothing runs."""
        return self._guardian.pid if self._guardian is not None and self.running() else None

    @property
    def exit_code(self) -> int | None:
        """None while it runs or never ran; else the child's code, or 128 plus the signal that ended it."""
        code = self._guardian.poll() if self._guardian is not None else None
        return 128 - code if code is not None and code < 0 else code

    def running(self) -> bool:
        """Whether the child lives."""
        return self._guardian is not None and self._guardian.poll() is None

    def start(self) -> None:
        """Returns when the child is started, which says nothing about its readiness. Raises LocalStackError."""
        if self.running():
            raise LocalStackError(f"{self.name} (pid {self._pid}) is running already; stop it first")
        self._close()
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            if self.log_path.stat().st_size > LOG_ROTATE_BYTES:
                self.log_path.replace(self.log_path.with_name(self.log_path.name + ".1"))
        self._guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARDIAN), self.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        answer = self._exchange(json.dumps(self._orders()).encode() + b"\n")
        if not answer.startswith("pid "):
            self._close()
            reason = answer.removeprefix("error ") or "its guardian ended without an answer"
            raise LocalStackError(
                f"{self.name} could not be started: {reason}. Command: {self.argv[0]}; see {self.log_path}"
            )
        self._pid = int(answer.removeprefix("pid "))

    def stop(self) -> None:
        """Asks the child to end, kills it after `stop_seconds`; returns when it is gone."""
        guardian = self._guardian
        if guardian is None:
            return
        self._hang_up()
        try:
            guardian.wait(self.stop_seconds + GUARDIAN_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill_by_pid()
            guardian.kill()
            guardian.wait()

    def kill(self) -> None:
        """SIGKILL to the child itself, as a crash would; returns when it is gone."""
        guardian = self._guardian
        if guardian is None or guardian.poll() is not None:
            return
        with self._line, suppress(BrokenPipeError, ValueError):
            if guardian.stdin is not None:
                guardian.stdin.write(b"kill\n")
                guardian.stdin.flush()
        try:
            guardian.wait(GUARDIAN_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill_by_pid()
            guardian.kill()
            guardian.wait()

    def _orders(self) -> dict[str, object]:
        account = None
        if self.user is not None:
            try:
                account = pwd.getpwnam(self.user)
            except KeyError:
                raise LocalStackError(f"{self.name} shall run as OS user {self.user}, who does not exist") from None
        return {
            "parent_pid": os.getpid(),
            "argv": self.argv,
            "env": dict(os.environ if self.env is None else self.env),
            "log_path": str(self.log_path.absolute()),
            "cwd": None if self.cwd is None else str(self.cwd),
            "uid": None if account is None else account.pw_uid,
            "gid": None if account is None else account.pw_gid,
            "stop_signal": int(self.stop_signal),
            "stop_seconds": self.stop_seconds,
            "orphan_signal": int(self.orphan_signal),
        }

    def _exchange(self, orders: bytes) -> str:
        guardian = self._guardian
        if guardian is None or guardian.stdin is None or guardian.stdout is None:
            raise LocalStackError(f"{self.name}: the line to its guardian is closed")
        with suppress(BrokenPipeError):
            guardian.stdin.write(orders)
            guardian.stdin.flush()
        readable, _, _ = select([guardian.stdout], [], [], SPAWN_SECONDS)
        return guardian.stdout.readline().decode(errors="replace").strip() if readable else ""

    def _hang_up(self) -> None:
        with self._line, suppress(BrokenPipeError):
            if self._guardian is not None and self._guardian.stdin is not None:
                self._guardian.stdin.close()

    def _kill_by_pid(self) -> None:
        # The guardian is still the parent and has not reaped, so the number cannot have passed to another process.
        if self._pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    def _close(self) -> None:
        """Lets go of the guardian before; ends it if it lives."""
        guardian, self._guardian, self._pid = self._guardian, None, None
        if guardian is None:
            return
        for end in (guardian.stdin, guardian.stdout):
            if end is not None:
                with suppress(BrokenPipeError):
                    end.close()
        try:
            guardian.wait(GUARDIAN_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            guardian.kill()
            guardian.wait()
