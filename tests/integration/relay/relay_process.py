"""A relay as its own process, with its health pages and the signals a test sends it."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tallyhook.settings import Settings
from tests.integration.relay.waiting import eventually

_MAIN = "import sys; from sinks.relay.app import run; from tallyhook.settings import load; sys.exit(run(load()))"


class RelayProcess:
    """One relay; `env` adds settings to those of the installation, `program` is what the interpreter is given."""

    def __init__(
        self, settings: Settings, log_path: Path, *, program: Sequence[str] = ("-c", _MAIN), **env: str
    ) -> None:
        self.port = _free_port()
        self.log_path = log_path
        own = settings_of(settings) | {
            "TALLYHOOK_RELAY_HEALTH_PORT": str(self.port),
            "TALLYHOOK_RELAY_LEASE_SECONDS": "2",
        }
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *program], env=os.environ | own | env, stdout=log, stderr=log
            )

    @property
    def pid(self) -> int:
        """Of the relay itself."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it lives."""
        return self._process.poll()

    def log(self) -> str:
        """What it wrote."""
        return self.log_path.read_text(encoding="utf-8")

    def status(self, path: str) -> tuple[int, list[str]]:
        """Status and reasons of a health page; 0 when nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=2) as answer:
                return answer.status, []
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)["reasons"]
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return 0, []

    def metric(self, name: str) -> float | None:
        """The sum of a metric's series; None when there is none or nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=2) as answer:
                lines = answer.read().decode().splitlines()
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return None
        found = [float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name]
        return sum(found) if found else None

    def sample(self, name: str, **labels: str) -> float:
        """The sum of a metric's series with these labels; 0 when there is none or nobody answers."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=2) as answer:
                lines = answer.read().decode().splitlines()
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return 0.0
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in lines
            if line.startswith(f"{name}{{") and all(part in line for part in wanted)
        )

    def active(self) -> bool:
        """Whether it has the lease."""
        return self.metric("tallyhook_relay_active") == 1

    def await_active(self, seconds: float = 20) -> None:
        """Returns once it has the lease."""
        eventually("the relay has the lease", lambda: self.active() or self._fail_if_ended(), seconds)

    def await_halted(self, seconds: float = 20) -> str:
        """Returns the reason once it has stopped its work but not its process."""

        def reason() -> str:
            self._fail_if_ended()
            status, reasons = self.status("/readyz")
            return reasons[0] if status == 503 and "somebody must look at this" in self.log() else ""

        return eventually("the relay stops its work", reason, seconds)

    def await_exit(self, seconds: float = 20) -> int:
        """The exit code."""
        return self._process.wait(timeout=seconds)

    def stop(self) -> int:
        """SIGTERM; gives the exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self.await_exit()

    def kill(self) -> None:
        """SIGKILL, and waits for the end."""
        self._process.kill()
        self._process.wait(timeout=10)

    def freeze(self) -> None:
        """SIGSTOP."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def _fail_if_ended(self) -> bool:
        assert self.exit_code is None, f"the relay ended with {self.exit_code}:\n{self.log()}"
        return False


def settings_of(settings: Settings) -> dict[str, str]:
    """What a command needs to know of an installation, as environment variables."""
    assert settings.kafka.bootstrap is not None
    assert settings.database.url is not None
    return {
        "TALLYHOOK_TOPIC_PREFIX": settings.installation.topic_prefix,
        "TALLYHOOK_SCHEMA": settings.installation.schema_name,
        "TALLYHOOK_PARTITIONS": str(settings.installation.partitions),
        "TALLYHOOK_KAFKA_BOOTSTRAP": settings.kafka.bootstrap,
        "TALLYHOOK_DATABASE_URL": settings.database.url.get_secret_value(),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
