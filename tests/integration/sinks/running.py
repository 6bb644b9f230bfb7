"""The whole sink on real Kafka: topics, records, and worker processes that can be killed."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Producer

from schemas.topics import TopicNames
from sinks.migrations import upgrade
from sinks.records import RecordHeaders
from tallyhook.kafka import producer
from tallyhook.operations import topics
from tallyhook.settings import (
    DatabaseSettings,
    IngressSettings,
    Installation,
    KafkaSettings,
    ProcessSettings,
    RelaySettings,
    Settings,
    SinkSettings,
    StreamSettings,
)
from tests.integration.sinks.deliveries import Delivery

PARTITIONS = 4
ANY_PARTITION = -1  # by the key
PATIENCE_SECONDS = 30.0
START = "import sys; from tallyhook.settings import load; from sinks.worker import run; sys.exit(run(load()))"


@dataclass
class Running:
    """An installation with topics and schema, and the worker processes of one test."""

    settings: Settings
    folder: Path
    producer: Producer
    workers: "list[Worker]" = field(default_factory=list)
    next_source: int = 0

    @property
    def names(self) -> TopicNames:
        """The installation's topics."""
        return TopicNames(self.settings.installation.topic_prefix)

    def publish(self, *deliveries: Delivery, partition: int | None = None) -> None:
        """Writes deliveries to `state-changes`, as the stream does, and waits until they are there."""
        place = ANY_PARTITION if partition is None else partition
        for delivery in deliveries:
            source, self.next_source = self.next_source, self.next_source + 1
            self.producer.produce(
                self.names.state_changes,
                key=delivery.object_id,
                value=delivery.body,
                headers=delivery.headers(0, source),
                partition=place,
            )
        assert self.producer.flush(PATIENCE_SECONDS) == 0

    def put(self, topic: str, key: str | None, value: bytes | None, headers: RecordHeaders = ()) -> None:
        """Writes one record to any topic."""
        self.producer.produce(topic, key=key, value=value, headers=list(headers))
        assert self.producer.flush(PATIENCE_SECONDS) == 0

    def worker(self, *, program: Sequence[str] = ("-c", START), **environment: str) -> "Worker":
        """A new worker process; `program` is what the interpreter is given."""
        made = Worker(self.settings, self.folder / f"worker-{len(self.workers)}.log", environment, program)
        self.workers.append(made)
        return made


class Worker:
    """One worker process."""

    def __init__(
        self,
        settings: Settings,
        log_path: Path,
        environment: Mapping[str, str],
        program: Sequence[str] = ("-c", START),
    ) -> None:
        self.port = free_port()
        self.log_path = log_path
        url, installation = settings.database.url, settings.installation
        assert settings.kafka.bootstrap is not None
        assert url is not None
        own = {
            "TALLYHOOK_KAFKA_BOOTSTRAP": settings.kafka.bootstrap,
            "TALLYHOOK_DATABASE_URL": url.get_secret_value(),
            "TALLYHOOK_TOPIC_PREFIX": installation.topic_prefix,
            "TALLYHOOK_SCHEMA": installation.schema_name,
            "TALLYHOOK_PARTITIONS": str(installation.partitions),
            "TALLYHOOK_SINK_HEALTH_PORT": str(self.port),
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
        with log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, *program], env={**kept, **own, **environment}, stdout=log, stderr=log
            )

    def page(self, name: str) -> tuple[int, str]:
        """Status and text of a health page; 0 while nothing listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{name}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()
        except OSError:
            return 0, ""

    def reasons(self) -> str:
        """What /readyz says is wrong; empty when it is ready."""
        status, text = self.page("readyz")
        return "" if status == 200 else "; ".join(orjson.loads(text)["reasons"]) if text else "does not listen"

    def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        lines = self.page("metrics")[1].splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends a signal and gives the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)

    def log(self) -> str:
        """What it wrote so far."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def told(self) -> list[dict[str, Any]]:
        """What its loop over `state-changes` logged as a warning or worse."""
        lines = [orjson.loads(line) for line in self.log().splitlines() if line.startswith("{") and line.endswith("}")]
        return [
            line
            for line in lines
            if line.get("loop") == "state-changes" and line["level"] in ("warning", "error", "critical")
        ]


def until(holds: Callable[[], bool], workers: "list[Worker]", seconds: float = PATIENCE_SECONDS) -> None:
    """Waits for a condition; fails with the workers' last words."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            told = "\n".join(f"{worker.reasons()}\n{worker.log()[-4000:]}" for worker in workers)
            raise AssertionError(f"it did not come about in {seconds:g} s\n{told}")
        time.sleep(0.02)


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    installation: Installation, kafka: KafkaSettings, database: DatabaseSettings, folder: Path
) -> Iterator[Running]:
    """Topics, schema and a producer; workers that still run at the end are killed."""
    settings = Settings(
        installation=installation.model_copy(update={"partitions": PARTITIONS}),
        kafka=kafka,
        database=database,
        process=ProcessSettings(),
        ingress=IngressSettings(),
        stream=StreamSettings(),
        sink=SinkSettings(),
        relay=RelaySettings(),
    )
    upgrade(settings.database, settings.installation)
    topics.apply(settings)
    client = producer(kafka, linger_ms=5, delivery_timeout_seconds=30, on_fatal=lambda _: None)
    made = Running(replace(settings), folder, client)
    try:
        yield made
    finally:
        for worker in made.workers:
            worker.end(signal.SIGKILL)
