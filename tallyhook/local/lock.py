"""One process at a time on a state directory."""

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

from tallyhook.errors import LocalStackError, StateDirBusy

# A holder that was killed takes a moment to die; who starts right after the kill shall not be sent away.
GRACE_SECONDS = 1.0
RETRY_SECONDS = 0.05


class StateDirLock:
    """An flock on `run/<name>.lock`: the system lets go of it when the holder dies, so it is never stale."""

    def __init__(self, state_dir: Path, name: str = "up") -> None:
        self.state_dir = state_dir
        self.path = state_dir / "run" / f"{name}.lock"
        self._handle: int | None = None

    def acquire(self) -> None:
        """Raises StateDirBusy that names the holder's pid after a second; does nothing when this object holds it."""
        if self._handle is not None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as failure:
            raise LocalStackError(
                f"state directory {self.state_dir} cannot be used: {failure}; choose another with --state-dir"
            ) from failure
        deadline = time.monotonic() + GRACE_SECONDS
        while not self._locked(handle):
            if time.monotonic() >= deadline:
                holder = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
                os.close(handle)
                raise StateDirBusy(
                    f"state directory {self.state_dir} is in use by process {holder}; "
                    "stop that one or choose another with --state-dir"
                )
            time.sleep(RETRY_SECONDS)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        self._handle = handle

    def release(self) -> None:
        """Lets the next one in."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _locked(self, handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as failure:
            os.close(handle)
            raise LocalStackError(f"{self.path} cannot be locked: {failure}") from failure
        return True

    def __enter__(self) -> "StateDirLock":
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
