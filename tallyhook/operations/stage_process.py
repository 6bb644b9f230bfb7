"""A stage as a process of its own: started, asked for its health, and replaced when it no longer answers."""

import http.client
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tallyhook.local.process import ManagedProcess
from tallyhook.logs import logger

_log = logger(__name__)

ASK_SECONDS = 2.0
LOOK_EVERY_SECONDS = 5.0
SILENT_SECONDS = 30.0
"""A stage that has not answered /livez with 200 for so long is killed, so that the supervisor replaces it."""


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """What a health page said; status 0 when nobody answered in time."""

    status: int
    pid: int | None
    reasons: tuple[str, ...]


class StageProcess:
    """One stage under its guardian.

    Args:
        name: ingress, stream, sink or relay.
        argv: the command.
        env: its whole environment but for the port.
        host: address of its health pages.
        port_variable: the setting that takes the port.
        choose_port: gives the port before each start; raises TallyhookError when there is none.
        log_path: where its standard error goes.
        stop_seconds: patience between SIGTERM and SIGKILL.
    """

    def __init__(
        self,
        name: str,
        argv: list[str],
        env: Mapping[str, str],
        *,
        host: str,
        port_variable: str,
        choose_port: Callable[[], int],
        log_path: Path,
        stop_seconds: float = 30.0,
    ) -> None:
        self.name, self.log_path = name, log_path
        self._argv, self._env, self._stop_seconds = argv, env, stop_seconds
        self._port_variable, self._choose_port = port_variable, choose_port
        self.address = (host, 0)
        self._process: ManagedProcess | None = None
        self._answered_at = self._asked_at = 0.0
        self._was_ready = False

    @property
    def pid(self) -> int | None:
        """The stage's own process; None when it is not running."""
        return self._process.pid if self._process is not None else None

    @property
    def url(self) -> str:
        """Base of its health pages."""
        return f"http://{self.address[0]}:{self.address[1]}"

    def start(self) -> None:
        """Starts the process on its port, or on another where that is taken; returns before it is ready."""
        port = self._choose_port()
        self.address = (self.address[0], port)
        env = {**self._env, self._port_variable: str(port)}
        self._process = ManagedProcess(
            self.name, self._argv, env=env, log_path=self.log_path, stop_seconds=self._stop_seconds
        )
        self._process.start()
        self._answered_at = time.monotonic()

    def stop(self) -> None:
        """SIGTERM, then SIGKILL after `stop_seconds`."""
        if self._process is not None:
            self._process.stop()

    def running(self) -> bool:
        """Whether the process lives; now and then also whether it answers. A silent one is killed."""
        if self._process is None or not self._process.running():
            return False
        now = time.monotonic()
        if now - self._asked_at < LOOK_EVERY_SECONDS:
            return True
        self._asked_at = now
        self._tell_readiness()
        answer = self._ask("/livez")
        if answer.status == http.client.OK:
            self._answered_at = time.monotonic()
        elif time.monotonic() - self._answered_at > SILENT_SECONDS:
            _log.error("stage does not answer, killing it", stage=self.name, reasons=answer.reasons)
            self._process.kill()
            return False
        return True

    def not_ready(self) -> list[str]:
        """Why it cannot do its work yet; empty when it can."""
        if self._process is None or not self._process.running():
            code = self._process.exit_code if self._process is not None else None
            return [f"{self.name} is not running (exit code {code}); see {self.log_path}"]
        answer = self._ask("/readyz")
        if answer.status == http.client.OK:
            return []
        reasons = answer.reasons or (f"{self.url}/readyz does not answer yet",)
        return [f"{self.name}: {reason}" for reason in reasons]

    def _tell_readiness(self) -> None:
        """A stage that stops being ready says why here, where a person looks, and not only in its own log."""
        reasons = self.not_ready()
        if self._was_ready and reasons:
            _log.warning("stage is not ready", stage=self.name, reasons=reasons, log=str(self.log_path))
        elif not self._was_ready and not reasons:
            _log.info("stage is ready", stage=self.name)
        self._was_ready = not reasons

    def _ask(self, path: str) -> HealthAnswer:
        """The answer of this very process: another one that sits on the port is as good as none."""
        answer = ask(self.address, path)
        if answer.status and answer.pid != self.pid:
            return HealthAnswer(0, None, (f"port {self.address[1]} is answered by process {answer.pid}, not ours",))
        return answer


def ask(address: tuple[str, int], path: str) -> HealthAnswer:
    """Reads a health page."""
    connection = http.client.HTTPConnection(*address, timeout=ASK_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read(65_536)
    except (OSError, http.client.HTTPException):
        return HealthAnswer(0, None, ())
    finally:
        connection.close()
    try:
        said = json.loads(body)
        pid, reasons = said.get("pid"), said.get("reasons", [])
    except (ValueError, AttributeError):
        return HealthAnswer(answer.status, None, ())
    return HealthAnswer(answer.status, pid if isinstance(pid, int) else None, tuple(str(reason) for reason in reasons))
