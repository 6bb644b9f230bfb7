"""Kafka and PostgreSQL together: which way each is had, and their start and stop as one."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tallyhook.local.containers import kafka_container, postgres_container
from tallyhook.local.given import given_kafka, given_postgres
from tallyhook.local.jars import default_cache_dir
from tallyhook.local.kafka_server import KafkaServer
from tallyhook.local.lock import StateDirLock
from tallyhook.local.ports import Ports
from tallyhook.local.postgres_server import PostgresServer
from tallyhook.local.service import OwnServer, Progress, Service
from tallyhook.local.way import decide_way
from tallyhook.settings import DatabaseSettings, KafkaSettings, LocalSettings


@dataclass
class LocalStack:
    """The two servers. `start` returns when both answer; if one does not, both are stopped and the error is raised.

    `own` are those of the two that are run here. `download_seconds` and `waiting_seconds` (the rest of the start)
    are known after `start`.
    """

    kafka: Service
    postgres: Service
    state_dir: Path
    own: tuple[OwnServer, ...]
    download_seconds: float = 0.0
    waiting_seconds: float = 0.0

    def __post_init__(self) -> None:
        self._lock = StateDirLock(self.state_dir, "local-stack")

    @property
    def kafka_bootstrap(self) -> str:
        """host:port, with commas where the settings name several."""
        return self.kafka.address

    @property
    def database_url(self) -> str:
        """libpq URI."""
        return self.postgres.address

    def start(self) -> None:
        """Raises StateDirBusy when another process has this state directory, LocalStackError otherwise."""
        self._lock.acquire()
        began = time.monotonic()
        pool = ThreadPoolExecutor(2, thread_name_prefix="local-stack")
        try:
            starts = [pool.submit(self._bring_up, service) for service in (self.postgres, self.kafka)]
            for outcome in as_completed(starts):
                outcome.result()
        except BaseException:
            # The other one may still be starting: it is told to give up, awaited, and stopped for good.
            pool.shutdown(wait=False, cancel_futures=True)
            self._stop_both()
            pool.shutdown(wait=True)
            self.stop()
            raise
        pool.shutdown()
        self.download_seconds = max((server.download_seconds for server in self.own), default=0.0)
        self.waiting_seconds = max(0.0, time.monotonic() - began - self.download_seconds)

    def stop(self) -> None:
        """Stops both, each within its bound."""
        try:
            self._stop_both()
        finally:
            self._lock.release()

    def discard(self) -> None:
        """Removes what a stopped stack keeps outside of its state directory; the downloads stay."""
        for server in self.own:
            server.discard()

    def __enter__(self) -> "LocalStack":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _bring_up(self, service: Service) -> None:
        for server in self.own:
            if server is service and not server.running():
                server.prepare()
        service.start()

    def _stop_both(self) -> None:
        with ThreadPoolExecutor(2, thread_name_prefix="local-stack") as pool:
            stops = [pool.submit(service.stop) for service in (self.kafka, self.postgres)]
        for outcome in stops:
            outcome.result()


def local_stack(
    state_dir: Path,
    kafka: KafkaSettings,
    database: DatabaseSettings,
    report: Callable[[Progress], None],
    local: LocalSettings | None = None,
) -> LocalStack:
    """Decides for each server: given by the settings, else run here, in a container or from packages.

    Starts nothing yet. `report` is called from several threads. `local` is read from the environment when None.
    Raises LocalStackError.
    """
    state_dir = state_dir.absolute()
    settings = local or LocalSettings()
    ports = Ports(state_dir)
    own: list[OwnServer] = []
    if kafka.bootstrap is None or database.url is None:
        in_containers = decide_way(state_dir, settings.servers) == "containers"
        cache = settings.cache_dir.expanduser().absolute() if settings.cache_dir else default_cache_dir()
        if kafka.bootstrap is None:
            own.append(
                kafka_container(state_dir, ports, report)
                if in_containers
                else KafkaServer(state_dir, ports, cache, report)
            )
        if database.url is None:
            own.append(
                postgres_container(state_dir, ports, report)
                if in_containers
                else PostgresServer(state_dir, ports, report)
            )
    run_here = {server.name: server for server in own}
    return LocalStack(
        kafka=run_here.get("kafka") or given_kafka(kafka, report),
        postgres=run_here.get("postgres") or given_postgres(database, report),
        state_dir=state_dir,
        own=tuple(own),
    )
