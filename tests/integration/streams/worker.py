"""Runs the product's worker as a process of its own, as its users do."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tallyhook.settings import Installation

PRODUCT = ("-m", "tests.integration.streams.programs.product")
LOOK_SECONDS = 0.1


def until(condition: Callable[[], bool], seconds: float, what: str | Callable[[], str]) -> None:
    """Returns once the condition holds; fails with `what` when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        said = what if isinstance(what, str) or time.monotonic() < deadline else what()
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {said}"
        time.sleep(LOOK_SECONDS)


class Worker:
    """One worker process; started anew after each end, its log goes on in the same file.

    Args:
        bootstrap: host:port of Kafka.
        installation: topics and group.
        folder: for its log and data.
        program: what Python runs.
        environment: further variables.
    """

    def __init__(
        self,
        bootstrap: str,
        installation: Installation,
        folder: Path,
        *,
        program: Sequence[str] = PRODUCT,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._program, self._log = program, folder / "worker.log"
        self._environment = os.environ | {
            "TALLYHOOK_KAFKA_BOOTSTRAP": bootstrap,
            "TALLYHOOK_TOPIC_PREFIX": installation.topic_prefix,
            "TALLYHOOK_SCHEMA": installation.schema_name,
            "TALLYHOOK_PARTITIONS": str(installation.partitions),
            "TALLYHOOK_STREAM_HEALTH_PORT": "0",
            "TALLYHOOK_STREAM_DATA_DIR": str(folder / "data"),
            "TALLYHOOK_STREAM_SESSION_TIMEOUT_SECONDS": "6",
            **(environment or {}),
        }
        self.process: subprocess.Popen[bytes] | None = None
        self._began = 0

    def start(self) -> None:
        """Starts the process; it need not be ready yet."""
        self._began = len(self.log)
        with self._log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, *self._program], env=self._environment, stdout=output, stderr=output
            )

    @property
    def log(self) -> str:
        """All it has written so far, over every start."""
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self.process is not None and self.process.poll() is None

    def keep_running(self) -> bool:
        """What a supervisor does: starts it again when it has ended. Always true, to be used in a condition."""
        if not self.running:
            self.start()
        return True

    def ask(self, page: str) -> tuple[int, str]:
        """Status and body of a health page; 0 while it does not answer."""
        port = self._health_port()
        if port is None:
            return 0, ""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()
        except OSError:
            return 0, ""

    def _health_port(self) -> int | None:
        for line in reversed(self.log[self._began :].splitlines()):
            if '"health_port"' in line:
                return int(json.loads(line)["health_port"])
        return None

    def wait_ready(self, seconds: float = 60) -> None:
        """Returns once /readyz is 200."""
        until(lambda: self.ask("/readyz")[0] == 200, seconds, lambda: f"worker ready; log ends: {self.log[-3000:]}")

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def end(self, number: signal.Signals, seconds: float = 60) -> int:
        """Sends a signal and returns the exit code."""
        self.send(number)
        return self.wait(seconds)

    def wait(self, seconds: float) -> int:
        """The exit code, once it has ended."""
        assert self.process is not None
        return self.process.wait(seconds)

    def discard(self) -> None:
        """Ends what is left of it."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
