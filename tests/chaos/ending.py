"""What must be true in the end, asked of the stores, of the topics and of `tallyhook audit`."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import psycopg

from schemas.effects import EFFECTS
from schemas.headers import texts
from schemas.topics import TopicNames
from tallyhook import kafka
from tallyhook.gateway.world.expected import differences
from tallyhook.settings import KafkaSettings
from tests.chaos.load import Load
from tests.chaos.tally import TALLY
from tests.commands import run
from tests.running import MERCHANT, RunningPipeline, await_true

ALWAYS_COMPARED = (
    "events",
    "deliveries",
    "arrival_numbers",
    "outbox_numbers",
    "aggregates",
    "verdicts",
    "ledger",
    "outbox",
    "effects",
)
"""Checks of the audit that have something to look at whatever the world is."""

Position = tuple[int, int]
Sent = tuple[str, str]


def audit(pipeline: RunningPipeline) -> list[str]:
    """The counterexamples that `tallyhook audit` finds, as a user runs it."""
    ready = pipeline.ready
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    own = {
        "TALLYHOOK_KAFKA_BOOTSTRAP": ready["kafka_bootstrap"],
        "TALLYHOOK_DATABASE_URL": ready["database_url"],
        "TALLYHOOK_INGRESS_MERCHANT_ID": MERCHANT,
    }
    shown = run(("audit", "--json"), kept | own)
    assert shown.stdout, shown.stderr
    report = json.loads(shown.stdout)
    TALLY.clean_audits += bool(report["clean"])
    looked_at = {check["name"]: check["looked_at"] for check in report["checks"]}
    assert [name for name in ALWAYS_COMPARED if not looked_at[name]] == []
    assert report["clean"] is (shown.returncode == 0)
    return [example["text"] for check in report["checks"] for example in check["examples"]]


def check_load(pipeline: RunningPipeline, load: Load, timeout_seconds: float) -> None:
    """Waits until the load is processed; then the tables hold the world's expected end, and the letters their bytes."""
    schema, expected = pipeline.ready["schema"], load.world.expected
    with pipeline.connect() as connection:

        def rows(query: str, *parameters: object) -> list[tuple[Any, ...]]:
            return connection.execute(query.replace("{s}", schema).encode(), parameters or None).fetchall()

        done = "SELECT count(*) FROM {s}.pg_webhook_inbox WHERE event_id = ANY(%s) AND processed_at IS NOT NULL"
        processed = list(expected.processed)
        await_true(
            lambda: rows(done, processed) == [(len(processed),)], timeout_seconds, f"{len(processed)} processed events"
        )
        bodies = list(load.letters.values())
        letters = "SELECT DISTINCT raw FROM {s}.quarantined_events WHERE stage = 'ingress' AND raw = ANY(%s)"
        await_true(lambda: len(rows(letters, bodies)) == len(bodies), timeout_seconds, f"{len(bodies)} letters")
        assert differences(expected, connection, schema) == []


def check_effects(pipeline: RunningPipeline, timeout_seconds: float) -> None:
    """The outbox has every number once, and a read_committed reader finds each of its rows once and nothing else."""
    ready = pipeline.ready
    with pipeline.connect() as connection:
        outbox = outbox_rows(connection, ready["schema"])
    check_topics(
        KafkaSettings(bootstrap=ready["kafka_bootstrap"]), TopicNames(ready["topic_prefix"]), outbox, timeout_seconds
    )


def outbox_rows(connection: psycopg.Connection[tuple[Any, ...]], schema: str) -> dict[Position, Sent]:
    """Topic and dedupe key by partition and number; fails where a number is missing."""
    numbers = f"SELECT partition, min(seq), max(seq), count(*) FROM {schema}.pg_outbox GROUP BY partition"
    found = connection.execute(numbers.encode()).fetchall()
    assert [(low, high) for _, low, high, _ in found] == [(0, count - 1) for *_, count in found]
    rows = connection.execute(f"SELECT partition, seq, topic, dedupe_key FROM {schema}.pg_outbox".encode()).fetchall()
    return {(partition, seq): (topic, key) for partition, seq, topic, key in rows}


def check_topics(
    settings: KafkaSettings, names: TopicNames, outbox: Mapping[Position, Sent], timeout_seconds: float
) -> None:
    """A read_committed reader finds each outbox row once and nothing else."""
    topics = {names.effect(effect): effect for effect in EFFECTS} | {names.balance_entries: "balance_entry"}

    def published() -> list[tuple[Position, Sent]]:
        found = []
        for topic, effect in topics.items():
            for message in kafka.read_to_end(settings, topic, timeout_seconds=timeout_seconds):
                headers = texts(kafka.headers_of(message))
                position = (int(headers["ce_outboxpartition"]), int(headers["ce_outboxseq"]))
                found.append((position, (effect, headers["ce_id"])))
        return found

    await_true(lambda: len(published()) >= len(outbox), timeout_seconds, f"{len(outbox)} published effects")
    found = published()
    assert [key for key, count in Counter(key for _, (_, key) in found).items() if count > 1] == []
    assert dict(found) == outbox
    assert len(found) == len(outbox)
