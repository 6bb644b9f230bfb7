"""A real ingress process, asked over real sockets."""

import http.client
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tallyhook.gateway.signing import SigningKey

START_SECONDS = 60.0
STOP_SECONDS = 40.0


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers in lower case, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass
class IngressProcess:
    """One started process; its log is read as it comes."""

    process: subprocess.Popen[bytes]
    key: SigningKey
    port: int = 0
    lines: list[dict[str, Any]] = field(default_factory=list)
    _rest: bytes = b""

    def post(
        self,
        body: bytes,
        *,
        message_id: str = "evt_1",
        path: str = "/webhooks",
        key: SigningKey | None = None,
        timestamp: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Signs and posts."""
        now = int(time.time()) if timestamp is None else timestamp
        signed = (key or self.key).sign(message_id, now, body)
        return self.request("POST", path, body, signed | dict(headers or {}))

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def metric(self, name: str, **labels: str) -> float:
        """One sample of /metrics; 0 where there is none."""
        wanted = ",".join(f'{label}="{value}"' for label, value in labels.items())
        series = f"{name}{{{wanted}}} " if labels else f"{name} "
        for line in self.request("GET", "/metrics").body.decode().splitlines():
            if line.startswith(series):
                return float(line.rsplit(" ", 1)[1])
        return 0.0

    def log_lines(self) -> list[dict[str, Any]]:
        """Everything logged so far."""
        self._read(0.0)
        return self.lines

    def await_log(self, event: str, seconds: float = 20.0) -> dict[str, Any]:
        """The first record with this event."""
        deadline = time.monotonic() + seconds
        while True:
            found = next((line for line in self.lines if line.get("event") == event), None)
            if found is not None:
                return found
            assert time.monotonic() < deadline, f"no log record {event!r} in {seconds} s: {self.lines}"
            assert self._read(0.2) or self.process.poll() is None, f"the process ended: {self.lines}"

    def await_ready(self, expected: int = 200, seconds: float = 30.0) -> Answer:
        """/readyz once it has the expected status."""
        deadline = time.monotonic() + seconds
        while True:
            answer = self.request("GET", "/readyz")
            if answer.status == expected:
                return answer
            assert time.monotonic() < deadline, f"/readyz is {answer.status} {answer.body!r}"
            self._read(0.05)

    def terminate(self) -> None:
        """SIGTERM; does not wait."""
        self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """The exit code."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"still running: {self.log_lines()}"
            self._read(0.05)
        self._read(0.0)
        return self.process.returncode

    def _read(self, seconds: float) -> bool:
        """Reads log lines that are there, waiting so long for the first; false at the end of the log."""
        assert self.process.stderr is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stderr, selectors.EVENT_READ)
            while selector.select(seconds):
                data = os.read(self.process.stderr.fileno(), 65536)
                if not data:
                    return False
                *whole, self._rest = (self._rest + data).split(b"\n")
                self.lines += [_record(line) for line in whole]
                seconds = 0.0
        return True


def _record(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {"event": "not JSON", "line": line.decode("utf-8", "replace")}
    return found if isinstance(found, dict) else {"event": "not an object", "line": line.decode()}


@contextmanager
def running(environment: Mapping[str, str], key: SigningKey, *, ready: bool = True) -> Iterator[IngressProcess]:
    """Starts `tallyhook ingress` on a free port with these settings and ends it afterwards, by force if need be."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tallyhook", "ingress"],
        env=inherited | {"TALLYHOOK_INGRESS_PORT": "0"} | dict(environment),
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    started = IngressProcess(process, key)
    try:
        if ready:
            started.port = int(started.await_log("listening", START_SECONDS)["port"])
            started.await_ready(seconds=START_SECONDS)
        yield started
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
        assert process.stderr is not None
        process.stderr.close()


def signed(ingress: IngressProcess, body: bytes, **replaced: str) -> dict[str, str]:
    """Good headers, some of them replaced (underscores stand for hyphens)."""
    headers = ingress.key.sign("evt_1", int(time.time()), body)
    return headers | {name.replace("_", "-"): value for name, value in replaced.items()}
