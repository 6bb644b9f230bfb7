"""A further process of a stage beside those of a running pipeline: it shares their work, and no supervisor minds it."""

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import orjson

from tests.running import MERCHANT, RunningPipeline, await_true

READY_SECONDS = 90.0
END_SECONDS = 60.0


class Companion:
    """One more process of a stage; a context that ends with it dead.

    Args:
        stage: stream, sink or relay.
        log_path: where its log goes; several lives append to it.
        environment: settings that it has alone.
    """

    def __init__(
        self, pipeline: RunningPipeline, stage: str, log_path: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        ready = pipeline.ready
        self.stage, self.log_path, self.port = stage, log_path, _free_port()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
        own = {
            "TALLYHOOK_KAFKA_BOOTSTRAP": ready["kafka_bootstrap"],
            "TALLYHOOK_DATABASE_URL": ready["database_url"],
            "TALLYHOOK_TOPIC_PREFIX": ready["topic_prefix"],
            "TALLYHOOK_SCHEMA": ready["schema"],
            "TALLYHOOK_INGRESS_MERCHANT_ID": MERCHANT,
            f"TALLYHOOK_{stage.upper()}_HEALTH_PORT": str(self.port),
            "TALLYHOOK_STREAM_SESSION_TIMEOUT_SECONDS": "6",
            "TALLYHOOK_STREAM_DATA_DIR": str(log_path.parent / f"companion-{stage}"),
            "TALLYHOOK_RELAY_LEASE_SECONDS": "3",
            "TALLYHOOK_RELAY_TRANSACTION_TIMEOUT_SECONDS": "15",
        }
        with log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tallyhook", stage],
                env=kept | own | dict(environment or {}),
                stdout=log,
                stderr=log,
            )

    def __enter__(self) -> "Companion":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(END_SECONDS)

    def page(self, name: str) -> tuple[int, str]:
        """Status and text of a health page; 0 while nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{name}", timeout=2) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode(errors="replace")
        except OSError:
            return 0, ""

    def is_ready(self) -> bool:
        """Whether it can do its work; fails when it has ended."""
        assert self.process.poll() is None, self.log()[-3000:]
        return self.page("readyz")[0] == 200

    def await_ready(self) -> None:
        """Returns once it can do its work."""
        await_true(self.is_ready, READY_SECONDS, f"the further {self.stage}")

    def metric(self, name: str) -> float:
        """The sum of a metric's samples; 0 when there are none or nobody answers."""
        lines = self.page("metrics")[1].splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))

    def stands_still(self) -> bool:
        """Whether a signal has stopped every thread of it."""
        states = Path(f"/proc/{self.process.pid}/task").glob("*/stat")
        # The state is the first field behind the name, which stands in brackets and may hold anything.
        return all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in states)

    def thaw(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and waits for the end."""
        self.process.kill()
        self.process.wait(END_SECONDS)

    def end(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(END_SECONDS)

    def log(self) -> str:
        """What it wrote so far."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def told(self) -> list[str]:
        """The events that it logged as a warning or worse, in order."""
        lines = [orjson.loads(line) for line in self.log().splitlines() if line.startswith("{") and line.endswith("}")]
        return [str(line["event"]) for line in lines if line["level"] in ("warning", "error", "critical")]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
