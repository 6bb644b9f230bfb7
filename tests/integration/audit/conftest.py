"""One running pipeline with traffic behind it, and faults that are planted in a snapshot and never committed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, LiteralString
from urllib.parse import urlsplit

import pytest
from confluent_kafka import TopicPartition
from psycopg import IsolationLevel, sql
from pydantic import SecretStr

from schemas.topics import TopicNames
from tallyhook import kafka
from tallyhook.gateway.posting import Poster
from tallyhook.gateway.signing import SigningKey
from tallyhook.operations.audit import marks as noting
from tallyhook.operations.audit.findings import AuditReport
from tallyhook.operations.audit.marks import Marks
from tallyhook.operations.audit.run import audit, examine
from tallyhook.operations.audit.snapshot import Snapshot
from tallyhook.postgres import Connection, connect
from tallyhook.settings import (
    DatabaseSettings,
    Installation,
    KafkaSettings,
    Settings,
)
from tests.chaos.deposits import World, make_world
from tests.chaos.gateway import Gateway
from tests.integration.audit.events import Posted, odd_events
from tests.integration.audit.objects import settings_of
from tests.running import RunningPipeline, await_true

SETTLE_SECONDS = 60


def _quiet(_step: str, _done: int, _total: int) -> None:
    """Progress is for people."""


@dataclass
class Audited:
    """A running pipeline, and audits of it."""

    pipeline: RunningPipeline
    settings: Settings
    connection: Connection
    accepted: int = 0
    worlds: list[World] = field(default_factory=list)

    @property
    def names(self) -> TopicNames:
        """The installation's topics."""
        return TopicNames(self.settings.installation.topic_prefix)

    def audit(self) -> AuditReport:
        """An audit of the pipeline as it is."""
        return audit(self.settings, _quiet)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`tallyhook audit` as a user runs it."""
        ready = self.pipeline.ready
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
        own = {
            "TALLYHOOK_KAFKA_BOOTSTRAP": ready["kafka_bootstrap"],
            "TALLYHOOK_DATABASE_URL": ready["database_url"],
        }
        return subprocess.run(
            [sys.executable, "-m", "tallyhook", "audit", *arguments],
            env=kept | own,
            capture_output=True,
            text=True,
            timeout=120,
        )

    @contextmanager
    def planted(
        self, *statements: LiteralString, parameters: Mapping[str, Any], since: datetime | None = None
    ) -> Iterator[Snapshot]:
        """A snapshot in which the statements have been run; they are rolled back afterwards."""
        with connect(self.settings.database, "test") as connection:
            connection.isolation_level = IsolationLevel.REPEATABLE_READ
            with connection.transaction(force_rollback=True):
                _set_schema(connection, self.settings)
                connection.execute("SET LOCAL lock_timeout = '10s'")
                # The flags' trigger refuses changes, as it must; a fault is what should never come to be.
                connection.execute("SET LOCAL session_replication_role = replica")
                for statement in statements:
                    assert connection.execute(statement, parameters).rowcount > 0, f"it changed nothing: {statement}"
                yield Snapshot(connection, self.settings, since)

    def audit_planted(
        self,
        *statements: LiteralString,
        parameters: Mapping[str, Any] | None = None,
        marks: Marks | None = None,
        since: datetime | None = None,
    ) -> AuditReport:
        """An audit that sees what the statements did."""
        noted = marks or noting.note(self.settings)
        with self.planted(*statements, parameters=parameters or {}, since=since) as snapshot:
            return examine(self.settings, noted, snapshot, _quiet)

    def one(self, statement: LiteralString, **parameters: Any) -> tuple[Any, ...]:
        """The first row of a statement."""
        row = self.connection.execute(statement, parameters).fetchone()
        assert row is not None, statement
        return row

    def post(self, events: Sequence[Posted]) -> None:
        """Posts events one after another; each must be accepted."""
        ready = self.pipeline.ready
        key, poster = SigningKey.from_text(ready["signing_key"]), Poster(f"{ready['ingress_url']}/webhooks")
        for event in events:
            answer = poster.post(event.body, key.sign(event.id, int(time.time()), event.body))
            assert answer.status == 200, answer
            self.accepted += event.reaches_the_sink
        poster.close()

    def start_gateway(self, world: World, rate_a_second: float) -> Gateway:
        """Starts to post a world; its correlations are written first."""
        ready = self.pipeline.ready
        self.correlate(world.correlations)
        gateway = Gateway(
            urlsplit(ready["ingress_url"]).netloc, SigningKey.from_text(ready["signing_key"]), rate_a_second
        )
        gateway.start(world.deliveries)
        self.worlds.append(world)
        self.accepted += len(world.deliveries)
        return gateway

    def correlate(self, correlations: dict[str, tuple[str, str, str]]) -> None:
        """What the merchant's own service writes."""
        with self.connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)"
                " VALUES (%s, %s, %s, %s)",
                [(deposit, *owner) for deposit, owner in correlations.items()],
            )

    def put(self, topic: str, partition: int, value: bytes, headers: Sequence[tuple[str, str]], key: str) -> None:
        """Writes one record, as somebody who should not."""
        client = kafka.producer(self.settings.kafka, linger_ms=0, delivery_timeout_seconds=30, on_fatal=lambda _: None)
        client.produce(topic, value, key, partition=partition, headers=list(headers))
        assert client.flush(30) == 0

    def cut_half(self, topic: str, more: int = 0) -> None:
        """Deletes the older half of each partition's records, and `more`, as retention does in time."""
        partitions = range(self.settings.installation.partitions)
        ends = kafka.watermarks(self.settings.kafka, topic, partitions, 20)
        wanted = [
            TopicPartition(topic, number, min(high, (low + high) // 2 + more)) for number, (low, high) in ends.items()
        ]
        client = kafka.admin(self.settings.kafka)  # its answers end with it, so it must outlive them
        for cut in client.delete_records(wanted).values():
            cut.result(20)

    def settle(self) -> None:
        """Waits until every accepted delivery is recorded and every outbox row is sent."""

        def settled() -> bool:
            recorded = self.one(
                "SELECT (SELECT count(*) FROM pg_webhook_inbox) + (SELECT count(*) FROM redeliveries)"
                " + (SELECT count(*) FROM quarantined_events)"
            )[0]
            (unsent,) = self.one(
                "SELECT count(*) FROM pg_outbox o LEFT JOIN relay_cursors c USING (partition)"
                " WHERE o.seq > coalesce(c.sent_seq, -1)"
            )
            return int(recorded) >= self.accepted and unsent == 0

        await_true(settled, SETTLE_SECONDS, f"{self.accepted} recorded deliveries, all their effects sent")

    @contextmanager
    def frozen(self, unit: str) -> Iterator[None]:
        """A process that does not run for a moment; it must be idle."""
        pid = self.pipeline.ready["pids"][unit]
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)


def _set_schema(connection: Connection, settings: Settings) -> None:
    name = sql.Identifier(settings.installation.schema_name)
    connection.execute(sql.SQL("SET search_path TO {}").format(name))


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """The pipeline of this module after traffic of every sort: parked, redelivered, late, quarantined, dead."""
    with RunningPipeline(tmp_path_factory.mktemp("audit") / "state") as pipeline:
        ready = pipeline.ready
        settings = settings_of(
            Installation(),
            KafkaSettings(bootstrap=ready["kafka_bootstrap"]),
            DatabaseSettings(url=SecretStr(ready["database_url"])),
        )
        with connect(settings.database, "test") as connection:
            _set_schema(connection, settings)
            made = Audited(pipeline, settings, connection)
            odd = odd_events()
            made.post(odd.events)
            made.start_gateway(make_world(seed=7, events=300, deposits=90), rate_a_second=150).join(60)
            # Without any header the stream cannot judge it: a dead letter of the stream, which the sink copies.
            made.put(made.names.events, 0, json.dumps({"id": "evt_stray"}).encode(), [], "stray")
            made.accepted += 1
            made.settle()
            made.correlate(odd.correlations)
            await_true(
                lambda: (
                    made.one("SELECT count(*) FROM quarantined_events WHERE reason = 'overpayment_collision'")[0] == 1
                ),
                SETTLE_SECONDS,
                "the event that waited to be set aside",
            )
            made.settle()
            yield made
