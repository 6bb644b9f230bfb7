"""A stage as a process of its own: started, asked for its health, and replaced when it no longer answers."""

import http.client
import json
import time
from collections.abc import Mapping
from pathlib import Path

from tallyhook.local.process import ManagedProcess

ASK_SECONDS = 2.0
LIVENESS_EVERY_SECONDS = 5.0
SILENT_SECONDS = 30.0
"""A stage that has not answered /livez with 200 for so long is killed, so that the supervisor replaces it."""


class StageProcess:
    """One stage under its guardian.

    Args:
        name: ingress, stream, sink or relay.
        argv: the command.
        env: its whole environment.
        address: host and port of its health pages.
        log_path: where its standard error goes.
        stop_seconds: patience between SIGTERM and SIGKILL.
    """

    def __init__(
        self,
        name: str,
        argv: list[str],
        env: Mapping[str, str],
        address: tuple[str, int],
        log_path: Path,
        stop_seconds: float = 30.0,
    ) -> None:
        self.name = name
        self.address = address
        self.log_path = log_path
        self._process = ManagedProcess(name, argv, env=env, log_path=log_path, stop_seconds=stop_seconds)
        self._answered_at = self._asked_at = 0.0

    @property
    def pid(self) -> int | None:
        """The stage's own process; None when it is not running."""
        return self._process.pid

    @property
    def url(self) -> str:
        """Base of its health pages."""
        return f"http://{self.address[0]}:{self.address[1]}"

    def start(self) -> None:
        """Starts the process; returns before it is ready."""
        self._process.start()
        self._answered_at = time.monotonic()

    def stop(self) -> None:
        """SIGTERM, then SIGKILL after `stop_seconds`."""
        self._process.stop()

    def running(self) -> bool:
        """Whether the process lives; now and then also whether /livez answers. A silent one is killed."""
        if not self._process.running():
            return False
        now = time.monotonic()
        if now - self._asked_at < LIVENESS_EVERY_SECONDS:
            return True
        self._asked_at = now
        status, _ = ask(self.address, "/livez")
        if status == http.client.OK:
            self._answered_at = time.monotonic()
        elif time.monotonic() - self._answered_at > SILENT_SECONDS:
            self._process.kill()
            return False
        return True

    def not_ready(self) -> list[str]:
        """Why it cannot do its work yet; empty when it can."""
        if not self._process.running():
            return [f"{self.name} is not running (exit code {self._process.exit_code}); see {self.log_path}"]
        status, reasons = ask(self.address, "/readyz")
        if status == http.client.OK:
            return []
        return [f"{self.name}: {reason}" for reason in reasons] or [
            f"{self.name} does not answer {self.url}/readyz yet"
        ]


def ask(address: tuple[str, int], path: str) -> tuple[int, list[str]]:
    """Status and reasons of a health page; status 0 when nobody answers in time."""
    connection = http.client.HTTPConnection(*address, timeout=ASK_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read(65_536)
    except (OSError, http.client.HTTPException):
        return 0, []
    finally:
        connection.close()
    try:
        reasons = json.loads(body).get("reasons", [])
    except (ValueError, AttributeError):
        reasons = []
    return answer.status, [str(reason) for reason in reasons]
