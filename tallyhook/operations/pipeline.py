"""The whole pipeline on one machine: servers, topics, tables, stages, and the file that says traffic may come."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pydantic import SecretStr

from sinks import migrations
from tallyhook.errors import TallyhookError
from tallyhook.gateway.signing import SigningKey
from tallyhook.local.lock import StateDirLock
from tallyhook.local.ports import Ports, is_free
from tallyhook.local.service import Progress, Service
from tallyhook.local.stack import LocalStack, local_stack
from tallyhook.logs import logger
from tallyhook.operations import topics
from tallyhook.operations.stage_process import StageProcess
from tallyhook.operations.supervisor import Supervisor, Unit
from tallyhook.settings import Settings, as_environment

_log = logger(__name__)

READY_SECONDS = 120.0
ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104  compared with, not listened on
STAGES = ("ingress", "stream", "sink", "relay")


class Pipeline:
    """Starts and supervises everything there is; a second one on the same state directory is refused.

    Args:
        settings: taken as they are; Kafka and PostgreSQL that are not given are started here.
        state_dir: `kafka/ postgres/ streams/ keys/ logs/ run/`.
        ready_file: written once traffic may come, removed on stop.
        report: called with each step of the start.
    """

    def __init__(
        self, settings: Settings, state_dir: Path, ready_file: Path | None, report: Callable[[Progress], None]
    ) -> None:
        self.state_dir, self.ready_file = state_dir.absolute(), ready_file
        self._report = report
        self._lock = StateDirLock(self.state_dir)
        self.stack: LocalStack = local_stack(self.state_dir, settings.kafka, settings.database, report)
        self.settings = settings
        self.supervisor = Supervisor(self._changed)
        self.stages: list[StageProcess] = []
        self._ready = False
        self._writing = threading.Lock()
        self.waiting_seconds = 0.0

    @property
    def services(self) -> list[Service]:
        """The servers, in the order of their stop."""
        return [self.stack.kafka, self.stack.postgres]

    def start(self) -> None:
        """Returns once traffic may come; on failure everything that was started is stopped again."""
        self._lock.acquire()
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        self.stack.start()
        began = time.monotonic()
        self.settings = _with_addresses(self.settings, self.stack)
        self._say("migrate", "tables")
        migrations.upgrade(self.settings.database, self.settings.installation)
        self._say("topics", "topics")
        topics.apply(self.settings)
        self.key = _signing_key(self.state_dir / "keys")
        self.stages = self._make_stages()
        for stage in self.stages:
            stage.start()
        for unit in self._units():
            self.supervisor.watch(unit)
        self._await_ready()
        self._ready = True
        self._changed()
        self.waiting_seconds = self.stack.waiting_seconds + time.monotonic() - began

    def stop(self) -> None:
        """Stops everything in order: the door first, the servers last. The ready file goes first of all."""
        self._ready = False
        with self._writing:
            if self.ready_file is not None:
                self.ready_file.unlink(missing_ok=True)
        self.supervisor.stop(self.stages)
        self.stack.stop()
        self._lock.release()

    def describe(self) -> dict[str, object]:
        """What the ready file says."""
        ingress = self.stages[0]
        return {
            "ingress_url": ingress.url,
            "console_url": None,
            "gateway_url": None,
            "database_url": self.stack.database_url,
            "kafka_bootstrap": self.stack.kafka_bootstrap,
            "topic_prefix": self.settings.installation.topic_prefix,
            "schema": self.settings.installation.schema_name,
            "signing_key": self.key.secret_text(),
            "metrics_urls": {stage.name: f"{stage.url}/metrics" for stage in self.stages},
            "pids": {unit.name: unit.pid for unit in self._units()},
        }

    def _units(self) -> list[Unit]:
        return [*self.services, *self.stages]

    def _changed(self) -> None:
        with self._writing:
            if self._ready and self.ready_file is not None:
                _write_private(self.ready_file, json.dumps(self.describe(), indent=2) + "\n")

    def _make_stages(self) -> list[StageProcess]:
        env = _environment(self.settings, self.state_dir)
        made, ports = [], Ports(self.state_dir)
        health, s = self.settings.process.health_host, self.settings
        wanted = {
            "ingress": (s.ingress.host, s.ingress.port, "TALLYHOOK_INGRESS_PORT"),
            "stream": (health, s.stream.health_port, "TALLYHOOK_STREAM_HEALTH_PORT"),
            "sink": (health, s.sink.health_port, "TALLYHOOK_SINK_HEALTH_PORT"),
            "relay": (health, s.relay.health_port, "TALLYHOOK_RELAY_HEALTH_PORT"),
        }
        for name in STAGES:
            host, port, variable = wanted[name]
            port = _port(name, port, ports)
            made.append(
                StageProcess(
                    name,
                    [sys.executable, "-m", "tallyhook", name],
                    env | {variable: str(port)},
                    ("127.0.0.1" if host in ANY_ADDRESS else host, port),
                    self.state_dir / "logs" / f"{name}.log",
                )
            )
        return made

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while reasons := [reason for stage in self.stages for reason in stage.not_ready()]:
            if time.monotonic() > deadline:
                raise TallyhookError(
                    f"not ready after {READY_SECONDS:g} s: {'; '.join(reasons)}; logs are in {self.state_dir / 'logs'}"
                )
            self._say("ready", f"waiting: {reasons[0]}")
            time.sleep(0.1)
        self._say("ready", "every stage is ready")

    def _say(self, step: str, message: str) -> None:
        self._report(Progress(step, message))


def _with_addresses(settings: Settings, stack: LocalStack) -> Settings:
    return replace(
        settings,
        kafka=settings.kafka.model_copy(update={"bootstrap": stack.kafka_bootstrap}),
        database=settings.database.model_copy(update={"url": SecretStr(stack.database_url)}),
    )


def _environment(settings: Settings, state_dir: Path) -> dict[str, str]:
    """The stages' environment: this process's without our variables, and the settings with local addresses and key."""
    stream = settings.stream
    if "data_dir" not in stream.model_fields_set:
        stream = stream.model_copy(update={"data_dir": state_dir / "streams"})
    ingress = settings.ingress
    if ingress.public_keys is None and ingress.public_keys_file is None:
        ingress = ingress.model_copy(update={"public_keys_file": state_dir / "keys" / "public_keys"})
    foreign = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    return foreign | as_environment(replace(settings, stream=stream, ingress=ingress))


def _signing_key(folder: Path) -> SigningKey:
    """The key for local use: made once a state directory, its public half in the file that ingress reads."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    secret = folder / "signing_key"
    if not secret.exists():
        _write_private(secret, SigningKey.generate().secret_text() + "\n")
    key = SigningKey.from_text(secret.read_text(encoding="utf-8").strip())
    (folder / "public_keys").write_text(f"local={key.public_text()}\n", encoding="utf-8")
    return key


def _write_private(path: Path, text: str) -> None:
    """Writes a file that only its owner may read, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(path)


def _port(name: str, wanted: int, ports: Ports) -> int:
    """The wanted port, or where it is taken (or 0) one of the state directory's own, kept over restarts."""
    if wanted and is_free(wanted):
        return wanted
    return ports[name] if is_free(ports[name]) else ports.renew(name)
