"""Kafka and PostgreSQL in containers, where a Docker engine answers.

testcontainers starts them, and its reaper removes them when this process goes, however it goes. The data lives in
named volumes, which stay. Inside and outside the ports are the same, so that a broker can reach itself by the address
it tells its clients.
"""

import base64
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tallyhook.errors import LocalStackError
from tallyhook.local.jars import KAFKA_VERSION
from tallyhook.local.kafka_config import HEAP_MEGABYTES, as_environment, broker_settings
from tallyhook.local.ports import Ports, is_free
from tallyhook.local.postgres_server import DATABASE, SERVER_SETTINGS, USER, VERSION
from tallyhook.local.readiness import await_answer, kafka_answers, postgres_answers
from tallyhook.local.service import Progress, Report

READY_SECONDS = 90.0
STOP_SECONDS = 20
KAFKA_DATA = PurePosixPath("/var/lib/kafka/data")


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """What is run: `port` is bound to 127.0.0.1 under the same number, the named volume `volume` to `data`."""

    name: str
    image: str
    command: list[str] | None
    environment: dict[str, str]
    port: int
    volume: str
    data: str


def container_name(state_dir: Path, service: str) -> str:
    """The same for each start on one state directory; also the name of the volume."""
    return f"tallyhook-{hashlib.sha256(str(state_dir.resolve()).encode()).hexdigest()[:16]}-{service}"


def kafka_plan(state_dir: Path, ports: Ports) -> ContainerPlan:
    """Apache's own image, configured like the broker that runs without containers."""
    name = container_name(state_dir, "kafka")
    settings = broker_settings(
        data=KAFKA_DATA,
        broker_port=ports["kafka"],
        controller_port=ports["kafka-controller"],
        listen="0.0.0.0",  # noqa: S104 - inside the container; outside it is bound to 127.0.0.1
    )
    cluster_id = base64.urlsafe_b64encode(hashlib.sha256(name.encode()).digest()[:16]).decode().rstrip("=")
    environment = {
        **as_environment(settings),
        "CLUSTER_ID": cluster_id.replace("-", "A"),
        "KAFKA_HEAP_OPTS": f"-Xmx{HEAP_MEGABYTES}m",
    }
    image = f"apache/kafka:{KAFKA_VERSION}"
    return ContainerPlan(name, image, None, environment, ports["kafka"], name, str(KAFKA_DATA))


def postgres_plan(state_dir: Path, ports: Ports) -> ContainerPlan:
    """The official image, configured like the server that runs without containers."""
    name = container_name(state_dir, "postgres")
    settings = {"port": str(ports["postgres"]), **SERVER_SETTINGS}
    command = ["postgres", *(part for key, value in settings.items() for part in ("-c", f"{key}={value}"))]
    environment = {"POSTGRES_USER": USER, "POSTGRES_DB": DATABASE, "POSTGRES_HOST_AUTH_METHOD": "trust"}
    return ContainerPlan(
        name, f"postgres:{VERSION}", command, environment, ports["postgres"], name, "/var/lib/postgresql"
    )


class ContainerServer:
    """One server in a container; `plan` is asked anew at each start because ports may have changed."""

    pid: int | None = None

    def __init__(
        self,
        name: str,
        port_names: list[str],
        ports: Ports,
        plan: Callable[[], ContainerPlan],
        address: Callable[[], str],
        attempt: Callable[[str], str | None],
        report: Report,
    ) -> None:
        self.name = name
        self.port_names = port_names
        self.ports = ports
        self.plan = plan
        self.report = report
        self.download_seconds = 0.0
        self._address = address
        self._attempt = attempt
        self._container: Any = None  # testcontainers' DockerContainer, which comes without types
        self._cancelled = threading.Event()

    @property
    def address(self) -> str:
        """What clients connect to."""
        return self._address()

    def running(self) -> bool:
        """Whether the engine says that the container runs."""
        if self._container is None:
            return False
        with _engine_errors(self.name), suppress(_not_found()):
            wrapped = self._container.get_wrapped_container()
            wrapped.reload()
            return bool(wrapped.status == "running")
        return False

    def prepare(self) -> None:
        """Pulls the image, removes the container that a crash left, and renews ports that are taken."""
        self._cancelled.clear()
        plan = self.plan()
        began = time.monotonic()
        with _engine_errors(self.name):
            self._pull_once(plan.image)
            self.download_seconds += time.monotonic() - began
            self._remove(plan.name)
        for name in self.port_names:
            if not is_free(self.ports[name]):
                self.ports.renew(name)

    def start(self) -> None:
        """Returns when the server answers. Raises LocalStackError."""
        if self.running():
            return
        self._cancelled.clear()
        plan = self.plan()
        with _engine_errors(self.name):
            self._pull_once(plan.image)
            self._remove(plan.name)
            self.ports.demand_free(self.port_names[0])
            self.report(Progress(f"{self.name}-start", f"{plan.image} on 127.0.0.1:{plan.port}"))
            self._container = make_container(plan)
            self._container.start()
        reason = await_answer(lambda: self._attempt(self.address), READY_SECONDS, self._going_on)
        if reason is not None or self._cancelled.is_set():
            last_lines = self._last_lines()
            self.stop()
            raise LocalStackError(
                f"{self.name} in container {plan.name} did not answer in {READY_SECONDS:.0f} s: {reason}\n"
                f"Its last lines:\n{last_lines}\n"
                "Next: set TALLYHOOK_LOCAL_SERVERS=packages and choose another --state-dir to do without containers"
            )

    def stop(self) -> None:
        """Ends the server cleanly and removes the container; the volume stays."""
        self._cancelled.set()
        if self._container is None:
            return
        with _engine_errors(self.name), suppress(_not_found()):
            self._container.get_wrapped_container().stop(timeout=STOP_SECONDS)
        with _engine_errors(self.name), suppress(_not_found()):
            self._container.stop(delete_volume=False)
        self._container = None

    def discard(self) -> None:
        """Removes the volume."""
        with _engine_errors(self.name), suppress(_not_found()):
            _client().volumes.get(self.plan().volume).remove(force=True)

    def _going_on(self) -> bool:
        return self.running() and not self._cancelled.is_set()

    def _pull_once(self, image: str) -> None:
        try:
            _client().images.get(image)
        except _not_found():
            self.report(Progress(f"{self.name}-download", f"pulling image {image}"))
            _client().images.pull(image)

    def _remove(self, name: str) -> None:
        with suppress(_not_found()):
            _client().containers.get(name).remove(force=True)

    def _last_lines(self) -> str:
        with _engine_errors(self.name), suppress(_not_found()):
            return str(self._container.get_wrapped_container().logs(tail=8).decode(errors="replace"))
        return ""


def options_of(plan: ContainerPlan) -> dict[str, Any]:
    """A plan as testcontainers' arguments."""
    return {
        "image": plan.image,
        "name": plan.name,
        "command": plan.command,
        "env": dict(plan.environment),
        "volumes": [(plan.volume, plan.data, "rw")],
    }


def published_ports(plan: ContainerPlan) -> dict[str, tuple[str, int]]:
    """Inside port to address and port outside, as the engine's interface has it."""
    return {f"{plan.port}/tcp": ("127.0.0.1", plan.port)}


def make_container(plan: ContainerPlan) -> Any:
    """testcontainers' object for a plan; talks to the engine, starts nothing."""
    from testcontainers.core.container import DockerContainer

    container = DockerContainer(**options_of(plan))
    # `with_bind_ports` knows no address, and without one the engine would listen on every interface.
    container.ports.update(published_ports(plan))
    return container


def kafka_container(state_dir: Path, ports: Ports, report: Report) -> ContainerServer:
    """Kafka for this state directory."""
    return ContainerServer(
        "kafka",
        ["kafka", "kafka-controller"],
        ports,
        lambda: kafka_plan(state_dir, ports),
        lambda: f"127.0.0.1:{ports['kafka']}",
        lambda address: kafka_answers({"bootstrap.servers": address}),
        report,
    )


def postgres_container(state_dir: Path, ports: Ports, report: Report) -> ContainerServer:
    """PostgreSQL for this state directory."""
    return ContainerServer(
        "postgres",
        ["postgres"],
        ports,
        lambda: postgres_plan(state_dir, ports),
        lambda: f"postgresql://{USER}@127.0.0.1:{ports['postgres']}/{DATABASE}",
        postgres_answers,
        report,
    )


def _client() -> Any:
    import docker

    return docker.from_env(timeout=60)


def _not_found() -> type[Exception]:
    from docker.errors import NotFound

    not_found: type[Exception] = NotFound
    return not_found


@contextmanager
def _engine_errors(name: str) -> Iterator[None]:
    """Turns what the engine's clients raise into LocalStackError."""
    from docker.errors import DockerException
    from testcontainers.core.exceptions import ContainerConnectException, ContainerStartException

    try:
        yield
    except (DockerException, ContainerStartException, ContainerConnectException, OSError) as failure:
        raise LocalStackError(
            f"the Docker engine could not serve {name}: {failure}. Check the engine, "
            "or set TALLYHOOK_LOCAL_SERVERS=packages and choose another --state-dir"
        ) from failure
