"""A `tallyhook up` of a test's own, its ready file, and what can be done to its processes."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg
from confluent_kafka import KafkaException

from tallyhook.kafka import admin
from tallyhook.settings import KafkaSettings

MERCHANT = "mer_test"
START_SECONDS = 150.0
STOP_SECONDS = 90.0


class RunningPipeline:
    """`tallyhook up` on a state directory; a context that ends with SIGTERM and expects exit code 0.

    Args:
        options: of `up`, beside the state directory and the ready file.
        environment: settings of the test's own.
    """

    def __init__(self, state_dir: Path, *options: str, **environment: str) -> None:
        self.state_dir = state_dir
        self._options, self._environment = options, environment
        self.ready_file = state_dir / "run" / "ready.json"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "RunningPipeline":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when traffic may come."""
        self.state_dir.mkdir(parents=True, exist_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
        # Ports of its own: another pipeline may be starting at this very moment.
        stages = ("INGRESS_PORT", "STREAM_HEALTH_PORT", "SINK_HEALTH_PORT", "RELAY_HEALTH_PORT", "GATEWAY_SIM_PORT")
        environment |= {f"TALLYHOOK_{name}": "0" for name in stages}
        environment |= {"TALLYHOOK_INGRESS_MERCHANT_ID": MERCHANT, "TALLYHOOK_STREAM_SESSION_TIMEOUT_SECONDS": "6"}
        for cache in ("TALLYHOOK_CACHE_DIR",):
            if cache in os.environ:
                environment[cache] = os.environ[cache]
        environment |= self._environment
        with (self.state_dir / "up.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tallyhook", "up"),
                    *("--state-dir", str(self.state_dir), "--ready-file", str(self.ready_file)),
                    *self._options,
                ],
                env=environment,
                stdout=log,
                stderr=log,
            )
        await_true(self._ready_or_dead, START_SECONDS, "the ready file")
        assert self.process.poll() is None, (self.state_dir / "up.log").read_text()[-3000:]

    def stop(self) -> None:
        """SIGTERM; the ready file must be gone and the exit code 0."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        assert code == 0, (self.state_dir / "up.log").read_text()[-3000:]
        assert not self.ready_file.exists()

    @property
    def ready(self) -> dict[str, Any]:
        """What the ready file says now."""
        found: dict[str, Any] = json.loads(self.ready_file.read_text())
        return found

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection of the test's own to the pipeline's database."""
        return psycopg.connect(self.ready["database_url"], autocommit=True, connect_timeout=5)

    def kill(self, unit: str) -> float:
        """kill -9 of one process; gives the seconds until another one does its work."""
        before = self.ready["pids"][unit]
        began = time.monotonic()
        os.kill(before, signal.SIGKILL)
        await_true(lambda: self.ready["pids"][unit] not in (before, None), 30, f"a new {unit}")
        await_true(lambda: self.answers(unit), 30 - (time.monotonic() - began), f"{unit} to answer")
        return time.monotonic() - began

    def answers(self, unit: str) -> bool:
        """Whether a server or a stage can do its work now."""
        if unit == "postgres":
            try:
                self.connect().close()
            except psycopg.OperationalError:
                return False
            return True
        if unit == "kafka":
            try:
                admin(KafkaSettings(bootstrap=self.ready["kafka_bootstrap"])).list_topics(timeout=2)
            except KafkaException:
                return False
            return True
        url = self.ready["metrics_urls"][unit].replace("/metrics", "/readyz")
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.HTTPError):
            return False

    def not_ready(self) -> dict[str, str]:
        """What each stage says of itself that is not ready, for a test that waited in vain."""
        found = {}
        for unit, url in self.ready["metrics_urls"].items():
            try:
                with urllib.request.urlopen(url.replace("/metrics", "/readyz"), timeout=2):
                    continue
            except urllib.error.HTTPError as refusal:
                found[unit] = refusal.read(2000).decode(errors="replace")
            except OSError as failure:
                found[unit] = str(failure)
        return found

    def _ready_or_dead(self) -> bool:
        assert self.process is not None
        return self.ready_file.exists() or self.process.poll() is not None


def await_true(condition: Callable[[], bool], timeout_seconds: float, what: str) -> None:
    """Waits for a condition; fails with `what` when it does not come in time."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout_seconds:.0f} s for {what}"
        time.sleep(0.1)
