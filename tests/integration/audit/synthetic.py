"""An installation of any size that nobody ran: rows made by SQL, and the records that belong to them.

By hand, on servers of its own: `python -m tests.integration.audit.synthetic --deposits 250000 --state-dir DIR` makes a
million events and then prints what `tallyhook audit` took.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from pydantic import SecretStr

from schemas.headers import EventHeaders, verdict_headers
from schemas.topics import TopicNames
from sinks.migrations import upgrade
from sinks.relay.record import OutboxRow, record_of, topic_of
from tallyhook import kafka
from tallyhook.local.stack import local_stack
from tallyhook.operations import topics
from tallyhook.postgres import Connection, Queries, connect
from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings, Settings, as_environment
from tests.integration.audit.objects import settings_of

PARTITIONS = 4
FILLED = ("correlations", "inbox", "deposits", "entries", "balances", "outbox", "positions")
FETCH_ROWS = 2000


def fill(settings: Settings, deposits: int, span: timedelta) -> None:
    """Tables and topics of an installation after four events of each deposit, spread over `span` up to now."""
    upgrade(settings.database, settings.installation)
    topics.apply(settings)
    _let_producers_stamp(settings)
    names = TopicNames(settings.installation.topic_prefix)
    queries = Queries("tests.integration.audit", "synthetic.sql", settings.installation.schema_name)
    parameters = {
        "deposits": deposits,
        "partitions": settings.installation.partitions,
        "seconds": span.total_seconds(),
        "topic": names.state_changes,
    }
    with connect(settings.database, "test") as connection:
        connection.execute("SET synchronous_commit = off")
        for name in FILLED:
            connection.execute(queries[name], parameters)
        connection.execute("ANALYZE")
        client = kafka.producer(
            settings.kafka,
            linger_ms=20,
            delivery_timeout_seconds=120,
            on_fatal=lambda _: None,
            extra={"queue.buffering.max.messages": 200_000},
        )
        ends = _publish_events(connection, queries, client, names)
        _publish_effects(connection, queries, client, names)
        for partition, seq, row_id in connection.execute(queries["last"]).fetchall():
            value = json.dumps({"seq": seq, "id": str(row_id)}).encode()
            client.produce(names.relay_progress, value, str(partition), partition)
        assert client.flush(120) == 0
    reader = kafka.plain_reader(settings.kafka, **{"group.id": settings.installation.group_id("streams")})
    offsets = [TopicPartition(names.events, partition, end) for partition, end in ends.items()]
    reader.commit(offsets=offsets, asynchronous=False)
    reader.close()


def _let_producers_stamp(settings: Settings) -> None:
    """The broker's own stamps would say that all of it came at once."""
    client = kafka.admin(settings.kafka)
    entry = ConfigEntry("message.timestamp.type", "CreateTime", incremental_operation=AlterConfigOpType.SET)
    own = f"{settings.installation.topic_prefix}."
    resources = [
        ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for topic in client.list_topics(timeout=30).topics
        if topic.startswith(own)
    ]
    for changed in client.incremental_alter_configs(resources).values():
        changed.result(30)


def _publish_events(connection: Connection, queries: Queries, client: Producer, names: TopicNames) -> dict[int, int]:
    ends: dict[int, int] = {}
    with connection.transaction(), connection.cursor(name="events") as cursor:
        cursor.itersize = FETCH_ROWS
        for event_id, event_type, raw, at, object_id, version, sequence, partition, offset in cursor.execute(
            queries["events"]
        ):
            headers = EventHeaders(
                id=event_id,
                type=event_type,
                source="/gateway",
                subject=object_id,
                time="2026-03-02T10:04:41Z",
                object_kind="deposit_order",
                status=event_type.removeprefix("deposit."),
                version=version,
                merchant="mer_1",
                sequence=sequence,
                livemode=True,
                received_at=at.isoformat(),
                origin="webhook",
                key_id="k1",
            ).encode()
            added = verdict_headers("advanced", None, None, partition, offset)
            _produce(client, names.events, partition, object_id, raw, headers, at)
            _produce(client, names.state_changes, partition, object_id, raw, [*headers, *added], at)
            ends[partition] = offset + 1
    return ends


def _publish_effects(connection: Connection, queries: Queries, client: Producer, names: TopicNames) -> None:
    with connection.transaction(), connection.cursor(name="effects") as cursor:
        cursor.itersize = FETCH_ROWS
        for row in cursor.execute(queries["effects"]):
            made = OutboxRow(*row)
            record = record_of(made, topic_of(names, made.topic), "/synthetic")
            _produce(client, record.topic, made.partition, record.key, record.value, record.headers, made.created_at)


def _produce(
    client: Producer, topic: str, partition: int, key: str, value: str | bytes, headers: Any, at: datetime
) -> None:
    while True:
        try:
            client.produce(
                topic, value, key, partition=partition, headers=list(headers), timestamp=int(at.timestamp() * 1000)
            )
        except BufferError:
            client.poll(0.2)
        else:
            return


def measured(settings: Settings, *arguments: str) -> tuple[float, int, dict[str, Any]]:
    """Seconds and peak resident memory (KiB) of `tallyhook audit --json`, and its report."""
    foreign = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "tallyhook", "audit", "--json", *arguments],
        env=foreign | as_environment(settings),
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    told = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1), process.returncode
    return time.monotonic() - began, usage.ru_maxrss, json.loads(told)


def _timed(what: str, work: Callable[[], None]) -> None:
    began = time.monotonic()
    work()
    print(f"{what}: {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    """Makes the installation unless the state directory has it, then audits it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deposits", type=int, default=250_000)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--since", action="append", default=[])
    options = parser.parse_args()
    done = options.state_dir / "filled"
    stack = local_stack(options.state_dir, KafkaSettings(), DatabaseSettings(), lambda _: None)
    with stack:
        settings = settings_of(
            Installation(partitions=PARTITIONS),
            KafkaSettings(bootstrap=stack.kafka_bootstrap),
            DatabaseSettings(url=SecretStr(stack.database_url)),
        )
        if not done.exists():
            _timed("filled", lambda: fill(settings, options.deposits, timedelta(hours=24)))
            done.touch()
        for arguments in [(), *(("--since", since) for since in options.since)]:
            seconds, peak_kib, report = measured(settings, *arguments)
            looked = {check["name"]: check["looked_at"] for check in report["checks"]}
            result = "clean" if report["clean"] else "NOT clean"
            print(
                f"audit {' '.join(arguments)}: {seconds:.0f} s, peak {peak_kib / 1024:.0f} MiB, {result}",
                looked,
                flush=True,
            )


if __name__ == "__main__":
    main()
