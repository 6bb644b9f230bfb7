"""The road under kill -9: whatever dies, each event ends once in the inbox and each effect once in its topic."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from schemas.effects import EFFECTS
from schemas.headers import texts
from schemas.topics import TopicNames
from tallyhook import kafka
from tallyhook.gateway.signing import SigningKey
from tallyhook.settings import KafkaSettings
from tests.chaos.deposits import World, expected_balances, make_world
from tests.chaos.gateway import Gateway
from tests.running import RunningPipeline, await_true

UNITS = ("ingress", "stream", "sink", "relay", "kafka", "postgres")
EVENTS, DEPOSITS = 5_000, 1_500


@pytest.mark.chaos
@pytest.mark.timeout(1500)
def test_nothing_is_lost_doubled_or_regressed(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Every unit dies with -9 under load and is back within 30 s; then the stores and topics agree with the posts."""
    rounds = 4 if request.config.getoption("--chaos-long") else 1
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")
    world = make_world(seed, EVENTS * rounds, DEPOSITS * rounds)
    with RunningPipeline(tmp_path / "state") as pipeline:
        back_seconds = _kill_under_load(pipeline, world, rounds, random.Random(seed))
        print("back after seconds:", {unit: [round(s, 1) for s in times] for unit, times in back_seconds.items()})
        _check(pipeline, world)
        assert _audit(pipeline) == []


def _kill_under_load(
    pipeline: RunningPipeline, world: World, rounds: int, chance: random.Random
) -> dict[str, list[float]]:
    ready = pipeline.ready
    gateway = Gateway(urlsplit(ready["ingress_url"]).netloc, SigningKey.from_text(ready["signing_key"]), 120)
    correlator = threading.Thread(target=_correlate, args=(pipeline, world, gateway, chance), daemon=True)
    deposits = list(world.correlations)
    with pipeline.connect() as connection:
        _insert(connection, ready["schema"], world, deposits[::2])
    gateway.start(world.deliveries)
    correlator.start()
    back: dict[str, list[float]] = {unit: [] for unit in UNITS}
    for _ in range(rounds):
        for unit in chance.sample(UNITS, len(UNITS)):
            passed = gateway.sent
            await_true(lambda passed=passed: gateway.sent > passed + 100, 60, "traffic between two kills")  # type: ignore[misc]
            back[unit].append(pipeline.kill(unit))
    assert gateway.sent < len(world.deliveries), "the posting is to go on during an audit"
    assert _audit(pipeline) == []
    gateway.join(300)
    correlator.join(60)
    assert not correlator.is_alive()
    print("answers:", dict(gateway.answers))
    return back


def _audit(pipeline: RunningPipeline) -> list[str]:
    """The counterexamples that `tallyhook audit` finds, as a user runs it."""
    ready = pipeline.ready
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    own = {"TALLYHOOK_KAFKA_BOOTSTRAP": ready["kafka_bootstrap"], "TALLYHOOK_DATABASE_URL": ready["database_url"]}
    shown = subprocess.run(
        [sys.executable, "-m", "tallyhook", "audit", "--json"],
        env=kept | own,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert shown.stdout, shown.stderr
    report = json.loads(shown.stdout)
    assert all(check["looked_at"] > 0 for check in report["checks"] if check["name"] != "flags")
    assert report["clean"] is (shown.returncode == 0)
    return [example["text"] for check in report["checks"] for example in check["examples"]]


def _correlate(pipeline: RunningPipeline, world: World, gateway: Gateway, chance: random.Random) -> None:
    """The second half of the correlations, each at a moment of its own, through a database that dies meanwhile."""
    late = list(world.correlations)[1::2]
    chance.shuffle(late)
    done = 0
    while done < len(late):
        share = min(1.0, gateway.sent / len(world.deliveries) + 0.01)
        due = late[done : max(done + 1, int(share * len(late)))]
        try:
            with pipeline.connect() as connection:
                _insert(connection, pipeline.ready["schema"], world, due)
            done += len(due)
        except psycopg.OperationalError:
            pass  # the database is being restarted: the merchant's service would try again, too
        time.sleep(0.2)


def _insert(connection: psycopg.Connection[tuple[Any, ...]], schema: str, world: World, deposits: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {schema}.pg_deposit_correlations"
            " (pg_deposit_id, merchant_reference, our_order_id, our_user_id) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            [(deposit, *world.correlations[deposit]) for deposit in deposits],
        )


def _check(pipeline: RunningPipeline, world: World) -> None:
    ready = pipeline.ready
    schema = ready["schema"]
    with pipeline.connect() as connection:

        def rows(query: str) -> list[tuple[Any, ...]]:
            return connection.execute(query.replace("{s}", schema)).fetchall()

        wanted = len(world.events)
        done = "SELECT count(*) FROM {s}.pg_webhook_inbox WHERE processed_at IS NOT NULL"
        await_true(lambda: rows(done)[0][0] >= wanted, 120, f"{wanted} processed events")
        inbox = {event_id for (event_id,) in rows("SELECT event_id FROM {s}.pg_webhook_inbox")}
        assert inbox == set(world.events)
        assert rows("SELECT count(*) FROM {s}.quarantined_events") == [(0,)]

        applied = rows("SELECT object_id, event_id FROM {s}.pg_webhook_inbox ORDER BY partition, arrival_seq")
        balances, entries = expected_balances(applied, world)
        assert dict(rows("SELECT entry_key, amount_minor FROM {s}.pg_user_balance_entries")) == entries
        assert dict(rows("SELECT user_id, balance_minor FROM {s}.pg_user_balances")) == balances
        summed = "SELECT user_id, sum(amount_minor)::bigint FROM {s}.pg_user_balance_entries GROUP BY user_id"
        assert dict(rows(summed)) == balances

        numbers = rows("SELECT partition, min(seq), max(seq), count(*) FROM {s}.pg_outbox GROUP BY partition")
        assert [(low, high) for _, low, high, _ in numbers] == [(0, count - 1) for *_, count in numbers]
        highest = rows("SELECT pg_deposit_id, pg_version FROM {s}.pg_deposits")
        newest: dict[str, int] = {}
        for event in world.events.values():
            newest[event.deposit] = max(event.version, newest.get(event.deposit, -1))
        assert dict(highest) == newest
        outbox = {
            (partition, seq): (topic, key)
            for partition, seq, topic, key in rows("SELECT partition, seq, topic, dedupe_key FROM {s}.pg_outbox")
        }
    _check_topics(KafkaSettings(bootstrap=ready["kafka_bootstrap"]), TopicNames(ready["topic_prefix"]), outbox)


def _check_topics(settings: KafkaSettings, names: TopicNames, outbox: dict[tuple[int, int], tuple[str, str]]) -> None:
    """A read_committed reader finds each outbox row once and nothing else."""
    topics = {names.effect(effect): effect for effect in EFFECTS} | {names.balance_entries: "balance_entry"}

    def published() -> list[tuple[tuple[int, int], tuple[str, str]]]:
        found = []
        for topic, effect in topics.items():
            for message in kafka.read_to_end(settings, topic, timeout_seconds=30):
                headers = texts(kafka.headers_of(message))
                position = (int(headers["ce_outboxpartition"]), int(headers["ce_outboxseq"]))
                found.append((position, (effect, headers["ce_id"])))
        return found

    await_true(lambda: len(published()) >= len(outbox), 60, f"{len(outbox)} published effects")
    found = published()
    assert [key for key, count in Counter(key for _, (_, key) in found).items() if count > 1] == []
    assert dict(found) == outbox
    assert len(found) == len(outbox)
