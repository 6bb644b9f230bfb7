"""An installation that is operated: its topics and tables, its stream and sink as processes, and the commands."""

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import Producer
from psycopg import sql

from schemas.headers import EventHeaders, Header
from schemas.topics import TopicNames
from sinks import quarantine
from sinks.migrations import upgrade
from sinks.quarantine import QuarantinedRow
from tallyhook.kafka import producer
from tallyhook.operations import topics
from tallyhook.operations.stage_process import StageProcess
from tallyhook.postgres import Queries, connect
from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings, Settings, as_environment, load
from tests.commands import Done, run
from tests.running import await_true

MERCHANT = "mer_1"
PARTITIONS = 4
PATIENCE_SECONDS = 60.0
RECEIVED_AT = "2026-05-01T10:00:00.123456Z"


@dataclass
class Operated:
    """One installation and what a test does with it.

    Args:
        folder: for logs.
        environment: variables for the commands, beside those of the settings.
    """

    settings: Settings
    connection: psycopg.Connection[tuple[Any, ...]]
    client: Producer
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    stages: dict[str, StageProcess] = field(default_factory=dict)

    @property
    def names(self) -> TopicNames:
        """The installation's topics."""
        return TopicNames(self.settings.installation.topic_prefix)

    def variables(self, **more: str) -> dict[str, str]:
        """The whole environment of a command or stage."""
        foreign = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
        return foreign | as_environment(self.settings) | self.environment | more

    def command(self, *arguments: str, **more: str) -> Done:
        """Runs `tallyhook` as a person does, without a terminal."""
        return run(arguments, self.variables(**more))

    def json(self, *arguments: str, code: int = 0, **more: str) -> Any:
        """What a command prints with `--json`; its exit code must be the expected one."""
        done = self.command(*arguments, "--json", **more)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    def start(self, name: str, **more: str) -> None:
        """Starts a stage and returns once it is ready."""
        stage = StageProcess(
            name,
            [sys.executable, "-m", "tallyhook", name],
            self.variables(**more),
            host="127.0.0.1",
            port_variable=f"TALLYHOOK_{name.upper()}_HEALTH_PORT",
            choose_port=_free_port,
            log_path=self.folder / f"{name}.log",
        )
        self.stages[name] = stage
        stage.start()
        await_true(lambda: stage.not_ready() == [], PATIENCE_SECONDS, f"{name} to be ready; see {stage.log_path}")

    def restart(self, name: str, **more: str) -> None:
        """Stops a stage cleanly and starts it with other settings."""
        self.stages[name].stop()
        self.start(name, **more)

    def publish(self, topic: str, key: str | None, value: bytes, headers: Sequence[Header]) -> None:
        """Writes one record and waits until it is there."""
        self.client.produce(topic, key=key, value=value, headers=list(headers))
        assert self.client.flush(PATIENCE_SECONDS) == 0

    def deliver(self, body: bytes) -> None:
        """Writes an event to `events` as the door does."""
        event = json.loads(body)
        self.publish(self.names.events, event["data"]["object"]["id"], body, door_headers(event))

    def set_aside(self, rows: Sequence[QuarantinedRow]) -> None:
        """Writes rows as the sink does."""
        queries = Queries("sinks", "sql/quarantine.sql", self.settings.installation.schema_name)
        with self.connection.transaction():
            quarantine.add(self.connection, queries, rows)

    def correlate(self, *deposits: str) -> None:
        """What the merchant's service writes: order `ord-<id>`, user `usr-<id>`."""
        with self.connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)"
                " VALUES (%s, %s, %s, %s)",
                [(key, f"ref-{key}", f"ord-{key}", f"usr-{key}") for key in deposits],
            )

    def rows(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """The rows of a statement in the installation's schema."""
        return self.connection.execute(statement.encode(), parameters or None).fetchall()

    def await_rows(self, expected: list[tuple[Any, ...]], statement: str, *parameters: object) -> None:
        """Waits until a statement gives exactly these rows."""
        found: list[tuple[Any, ...]] = []

        def there() -> bool:
            found[:] = self.rows(statement, *parameters)
            return found == expected

        try:
            await_true(there, PATIENCE_SECONDS, f"{expected} of {statement}")
        except AssertionError as failure:
            raise AssertionError(f"{failure}; it is {found}") from None

    def close(self) -> None:
        """Stops the stages."""
        for stage in self.stages.values():
            stage.stop()
        self.connection.close()


def operated(
    kafka: KafkaSettings,
    database: DatabaseSettings,
    installation: Installation,
    folder: Path,
    *,
    with_topics: bool = True,
    partitions: int = PARTITIONS,
) -> Operated:
    """Topics and tables of an installation; no stage runs yet."""
    own = installation.model_copy(update={"partitions": partitions})
    settings = replace(load(), installation=own, kafka=kafka, database=database)
    upgrade(settings.database, settings.installation)
    if with_topics:
        topics.apply(settings)
    connection = connect(settings.database, "test")
    connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(own.schema_name)))
    client = producer(kafka, linger_ms=5, delivery_timeout_seconds=30, on_fatal=lambda _: None)
    return Operated(settings, connection, client, folder)


def named_headers(event: Mapping[str, Any]) -> list[Header]:
    """The headers that name an event, its object and where it came from."""
    entity = event["data"]["object"]
    return EventHeaders(
        id=event["id"],
        type=event["type"],
        source="/gateway",
        subject=entity["id"],
        time=event["created_at"],
        object_kind=entity["object"],
        status=entity["status"],
        version=entity["version"],
        merchant=event["account"]["merchant_id"],
        sequence=event["sequence"],
        livemode=event["livemode"],
        received_at=RECEIVED_AT,
        origin="webhook",
        key_id="k1",
    ).encode()


def door_headers(event: Mapping[str, Any]) -> list[Header]:
    """The headers that the door gives to an event."""
    return [
        *named_headers(event),
        ("webhook-id", event["id"]),
        ("webhook-timestamp", "1777630000"),
        ("webhook-signature", "v1a,AA=="),
    ]


def deposit_body(event_id: str, deposit: str, version: int, status: str, **members: Any) -> bytes:
    """A deposit's event; settled ones get five amounts that agree."""
    entity: dict[str, Any] = {"id": deposit, "object": "deposit_order", "version": version, "status": status}
    if status == "settled":
        entity |= {
            "ordered_amount_minor": 10_000,
            "transferred_amount_minor": 10_000,
            "amount_received_minor": 10_000,
            "fee_total_minor": 150,
            "credited_amount_minor": 9_850,
        }
    event = {
        "id": event_id,
        "object": "event",
        "type": f"deposit.{status}",
        "livemode": True,
        "created_at": "2026-05-01T09:59:59.123Z",
        "sequence": version,
        "account": {"merchant_id": MERCHANT},
        "data": {"object": entity | members},
    }
    return json.dumps(event, ensure_ascii=False).encode()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
