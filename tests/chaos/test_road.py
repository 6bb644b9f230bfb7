"""The road under kill -9: whatever dies, each event ends once in the inbox and each effect once in its topic."""

import random
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from tallyhook.failpoint_arming import deaths_in
from tallyhook.gateway.signing import SigningKey
from tests.chaos.deposits import World, expected_balances, make_world
from tests.chaos.ending import audit, check_effects
from tests.chaos.gateway import Gateway
from tests.chaos.mortals import FAILPOINTS, SELDOM, die_at, stage_of, variables
from tests.chaos.tally import TALLY
from tests.running import RunningPipeline, await_true

STAGES, SERVERS = ("ingress", "stream", "sink", "relay"), ("kafka", "postgres")
EVENTS, DEPOSITS = 5_000, 1_500
DEATH_SECONDS, BACK_SECONDS = 60.0, 30.0


@pytest.mark.chaos
@pytest.mark.timeout(1500)
def test_nothing_is_lost_doubled_or_regressed(tmp_path: Path, seed: int) -> None:
    """Every stage dies at one of its commit boundaries, each server at any time; all are back within 30 s, stores and
    topics agree with the posts."""
    world = make_world(seed, EVENTS, DEPOSITS)
    folder = tmp_path / "failpoints"
    folder.mkdir()
    with RunningPipeline(tmp_path / "state", **variables(folder)) as pipeline:
        back_seconds = _kill_under_load(pipeline, folder, world, random.Random(seed))
        print("back after seconds:", {unit: round(seconds, 1) for unit, seconds in back_seconds.items()})
        _check(pipeline, world)
        assert audit(pipeline) == []


def _kill_under_load(pipeline: RunningPipeline, folder: Path, world: World, chance: random.Random) -> dict[str, float]:
    ready = pipeline.ready
    gateway = Gateway(urlsplit(ready["ingress_url"]).netloc, SigningKey.from_text(ready["signing_key"]), 120)
    correlator = threading.Thread(target=_correlate, args=(pipeline, world, gateway, chance), daemon=True)
    deposits = list(world.correlations)
    with pipeline.connect() as connection:
        _insert(connection, ready["schema"], world, deposits[::2])
    gateway.start(world.deliveries)
    correlator.start()
    back: dict[str, float] = {}
    for unit in chance.sample(STAGES + SERVERS, len(STAGES + SERVERS)):
        passed = gateway.sent
        await_true(lambda passed=passed: gateway.sent > passed + 100, 60, "traffic between two kills")  # type: ignore[misc]
        if unit in SERVERS:
            back[unit] = pipeline.kill(unit)
            TALLY.at_random[unit] += 1
            continue
        failpoint = chance.choice([name for name in FAILPOINTS if stage_of(name) == unit and name not in SELDOM])
        back[failpoint] = die_at(
            pipeline, folder, failpoint, chance, death_seconds=DEATH_SECONDS, back_seconds=BACK_SECONDS
        )
    assert deaths_in(folder).total() == len(STAGES)
    assert gateway.sent < len(world.deliveries), "the posting is to go on during an audit"
    assert audit(pipeline) == []
    gateway.join(300)
    correlator.join(60)
    assert not correlator.is_alive()
    TALLY.deliveries += gateway.sent
    print("answers:", dict(gateway.answers))
    return back


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

        highest = rows("SELECT pg_deposit_id, pg_version FROM {s}.pg_deposits")
        newest: dict[str, int] = {}
        for event in world.events.values():
            newest[event.deposit] = max(event.version, newest.get(event.deposit, -1))
        assert dict(highest) == newest
    check_effects(pipeline, 60)
