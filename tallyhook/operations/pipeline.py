"""The whole pipeline on one machine: servers, topics, tables, stages, and the file that says traffic may come."""

import json
import os
import shlex
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import SecretStr

from sinks import migrations
from tallyhook import failpoints
from tallyhook.errors import TallyhookError
from tallyhook.gateway.signing import SigningKey
from tallyhook.local.lock import StateDirLock
from tallyhook.local.ports import Ports, is_free
from tallyhook.local.service import Progress, Service
from tallyhook.local.stack import LocalStack, local_stack
from tallyhook.logs import logger
from tallyhook.operations import topics
from tallyhook.operations.door_settings import check_door
from tallyhook.operations.gateway_process import GatewayProcess
from tallyhook.operations.private_files import kept_secret, write_private
from tallyhook.operations.running_pipeline import described_file, own_keys_file
from tallyhook.operations.stage_process import StageProcess
from tallyhook.operations.supervisor import Supervisor, Unit
from tallyhook.settings import Component, Settings, as_environment, variable_of

_log = logger(__name__)

READY_SECONDS = 120.0
ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104  compared with, not listened on


class Pipeline:
    """Starts and supervises everything there is; a second one on the same state directory is refused.

    Args:
        settings: taken as they are; Kafka and PostgreSQL that are not given are started here.
        state_dir: `kafka/ postgres/ streams/ keys/ logs/ run/`.
        ready_file: written once traffic may come, removed on stop.
        report: called with each step of the start.
        gateway: the simulated gateway, too, once everything else is ready.

    Raises:
        SettingsError: the door would refuse its keys or endpoints.
    """

    def __init__(
        self,
        settings: Settings,
        state_dir: Path,
        ready_file: Path | None,
        report: Callable[[Progress], None],
        *,
        gateway: bool = False,
    ) -> None:
        check_door(settings.ingress)
        self.state_dir, self.ready_file = state_dir.absolute(), ready_file
        self._report = report
        self._lock = StateDirLock(self.state_dir)
        self.stack: LocalStack = local_stack(self.state_dir, settings.kafka, settings.database, report)
        self.settings = settings
        self.supervisor = Supervisor(self._changed)
        self.stages: list[StageProcess] = []
        self._with_gateway = gateway
        self.gateway: GatewayProcess | None = None
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
        self._await_ready(self.stages)
        if self._with_gateway:
            self._start_gateway()
        self._ready = True
        self._changed()
        self.waiting_seconds = self.stack.waiting_seconds + time.monotonic() - began

    def stop(self) -> None:
        """Stops everything in order: the door first, the servers last. The ready file goes first of all."""
        self._ready = False
        with self._writing:
            if self.ready_file is not None:
                with suppress(OSError):  # the folder may be gone; what runs must be stopped all the same
                    self.ready_file.unlink(missing_ok=True)
            for file in (self.exports_file, described_file(self.state_dir)):
                with suppress(OSError):
                    file.unlink(missing_ok=True)
        self.supervisor.stop([*([self.gateway.process] if self.gateway else []), *self.stages])
        self.stack.stop()
        self._lock.release()

    def describe(self) -> dict[str, object]:
        """What the ready file says."""
        ingress = self.stages[0]
        return {
            "ingress_url": ingress.url,
            "console_url": None,
            "gateway_url": self.gateway.process.url if self.gateway else None,
            "database_url": self.stack.database_url,
            "kafka_bootstrap": self.stack.kafka_bootstrap,
            "topic_prefix": self.settings.installation.topic_prefix,
            "schema": self.settings.installation.schema_name,
            "signing_key": self.key.secret_text(),
            "metrics_urls": {stage.name: f"{stage.url}/metrics" for stage in self.stages},
            "pids": {unit.name: unit.pid for unit in self._units()},
        }

    @property
    def exports_file(self) -> Path:
        """Shell lines that point the other commands at this pipeline; mode 0600, removed on stop."""
        return self.state_dir / "run" / "env"

    def _exports(self) -> str:
        ready = self.describe()
        variables = {
            "TALLYHOOK_KAFKA_BOOTSTRAP": ready["kafka_bootstrap"],
            "TALLYHOOK_DATABASE_URL": ready["database_url"],
            "TALLYHOOK_TOPIC_PREFIX": ready["topic_prefix"],
            "TALLYHOOK_SCHEMA": ready["schema"],
            "TALLYHOOK_SIGNING_KEY": ready["signing_key"],
        }
        keys = own_keys_file(self.settings, self.state_dir)
        if keys is not None:
            # The doctor looks at the door's keys, too.
            variables["TALLYHOOK_INGRESS_PUBLIC_KEYS_FILE"] = str(keys.absolute())
        if self.gateway is not None:
            variables["TALLYHOOK_GATEWAY_API_URL"] = ready["gateway_url"]
            variables["TALLYHOOK_GATEWAY_API_KEY"] = self.gateway.api_key
        return "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in variables.items())

    def _units(self) -> list[Unit]:
        return [*self.services, *self.stages, *([self.gateway.process] if self.gateway else [])]

    def _changed(self) -> None:
        with self._writing:
            if self._ready:
                write_private(self.exports_file, self._exports())
                write_private(described_file(self.state_dir), self._described())
            # Last: whoever sees it finds the others, too.
            if self._ready and self.ready_file is not None:
                write_private(self.ready_file, json.dumps(self.describe(), indent=2) + "\n")

    def _described(self) -> str:
        """What other commands on this machine need beside the ready file's members; it holds the key, too."""
        keys = own_keys_file(self.settings, self.state_dir)
        more = {
            "merchant_id": self.settings.ingress.merchant_id,
            "public_keys_file": str(keys) if keys is not None else None,
        }
        return json.dumps(self.describe() | more, indent=2) + "\n"

    def _start_gateway(self) -> None:
        """The simulator delivers as soon as it runs, so it comes last."""
        settings, host = self.settings, self.settings.gateway_sim.host
        keys = self.state_dir / "keys"
        self.gateway = GatewayProcess(
            settings,
            env=_environment(settings, self.state_dir),
            target=f"{self.stages[0].url}/webhooks",
            key_file=keys / "signing_key",
            journal_file=self.state_dir / "gateway" / "journal",
            keyring_file=own_keys_file(settings, self.state_dir),
            api_key=kept_secret(keys / "gateway_api_key"),
            host="127.0.0.1" if host in ANY_ADDRESS else host,
            choose_port=partial(_choose_port, "gateway", settings.gateway_sim, "port", self._ports),
            log_path=self.state_dir / "logs" / "gateway.log",
        )
        self.gateway.process.start()
        self.supervisor.watch(self.gateway.process)
        self._await_ready([self.gateway.process])

    def _make_stages(self) -> list[StageProcess]:
        env = _environment(self.settings, self.state_dir)
        self._ports = ports = Ports(self.state_dir)
        health, s = self.settings.process.health_host, self.settings
        wanted: dict[str, tuple[str, Component, str]] = {
            "ingress": (s.ingress.host, s.ingress, "port"),
            "stream": (health, s.stream, "health_port"),
            "sink": (health, s.sink, "health_port"),
            "relay": (health, s.relay, "health_port"),
        }
        return [
            StageProcess(
                name,
                [sys.executable, "-m", "tallyhook", name],
                env,
                host="127.0.0.1" if host in ANY_ADDRESS else host,
                port_variable=variable_of(type(component), field),
                choose_port=partial(_choose_port, name, component, field, ports),
                log_path=self.state_dir / "logs" / f"{name}.log",
            )
            for name, (host, component, field) in wanted.items()
        ]

    def _await_ready(self, stages: Sequence[StageProcess]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while reasons := [reason for stage in stages for reason in stage.not_ready()]:
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
    ingress, keys = settings.ingress, own_keys_file(settings, state_dir)
    if keys is not None:
        ingress = ingress.model_copy(update={"public_keys_file": keys})
    foreign = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    own = as_environment(replace(settings, stream=stream, ingress=ingress))
    return foreign | failpoints.handed_on(os.environ) | own


def _signing_key(folder: Path) -> SigningKey:
    """The key for local use: made once a state directory, its public half in the file that ingress reads."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    secret = folder / "signing_key"
    if not secret.exists():
        write_private(secret, SigningKey.generate().secret_text() + "\n")
    key = SigningKey.from_text(secret.read_text(encoding="utf-8").strip())
    (folder / "public_keys").write_text(f"local={key.public_text()}\n", encoding="utf-8")
    return key


def _choose_port(name: str, component: Component, field: str, ports: Ports) -> int:
    """The port of the settings; where a default one is taken (or 0), one of the state directory's own.

    Raises TallyhookError when somebody asked for this very port and it is taken.
    """
    wanted = int(getattr(component, field))
    if wanted and is_free(wanted):
        return wanted
    if wanted and field in component.model_fields_set:
        variable = variable_of(type(component), field)
        raise TallyhookError(f"{variable}={wanted}: another program has this port; stop it or choose another port")
    port = ports[name] if is_free(ports[name]) else ports.renew(name)
    if wanted:
        _log.warning("port is taken, using another", stage=name, taken=wanted, port=port)
    return port
