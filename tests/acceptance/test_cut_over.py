"""The switch from a hand-written handler, as the page on it tells: import, then everything comes again, then proof."""

import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from pydantic import SecretStr

from tallyhook.gateway.posting import Poster
from tallyhook.gateway.signing import SigningKey
from tallyhook.settings import DatabaseSettings, Installation
from tests.chaos.deposits import make_world
from tests.commands import run
from tests.integration.operations.old_handlers import OldHandler, effects, old_handler
from tests.integration.operations.sink_feed import withdrawal_body
from tests.running import MERCHANT, RunningPipeline, await_true

SETTLE_SECONDS = 60


def _withdrawals() -> dict[str, bytes]:
    """Orders that were paid out, that expired half filled, that were refused, and one of which a chunk was recalled."""
    made = []
    for number in range(10):
        name = f"wdr_{number}"
        chunk = (f"leg_{number}", 300, f"btxn_{number}")
        made += [
            withdrawal_body(name, 1, "open", filled=0, remaining=1000, merchant=MERCHANT),
            withdrawal_body(name, 3, "partially_filled", filled=300, remaining=700, fill=chunk, merchant=MERCHANT),
        ]
        if number % 4 == 0:
            made.append(withdrawal_body(name, 8, "settled", filled=1000, merchant=MERCHANT))
        elif number % 4 == 1:
            made.append(withdrawal_body(name, 6, "expired", filled=300, remaining=700, merchant=MERCHANT))
        elif number % 4 == 2:
            made.append(withdrawal_body(name, 5, "rejected", filled=300, remaining=700, merchant=MERCHANT))
        else:
            taken_back = (*chunk, f"back_{number}")
            made.append(withdrawal_body(name, 4, "partially_filled", reversal=taken_back, merchant=MERCHANT))
    return {body.split(b'"')[3].decode(): body for body in made}


def test_a_rehearsed_switch(
    tmp_path: Path, kafka_bootstrap: str, database_url: str, installation: Installation
) -> None:
    """Half at the old handler, import, all at the door: nothing twice, nothing lost, compare equal, audit clean."""
    database = DatabaseSettings(url=SecretStr(database_url))
    own = {
        "TALLYHOOK_KAFKA_BOOTSTRAP": kafka_bootstrap,
        "TALLYHOOK_DATABASE_URL": database_url,
        "TALLYHOOK_TOPIC_PREFIX": installation.topic_prefix,
        "TALLYHOOK_SCHEMA": installation.schema_name,
    }
    world = make_world(seed=11, events=200, deposits=60)
    withdrawals = _withdrawals()
    posted = [(event.id, event.body) for event in world.deliveries] + list(withdrawals.items())
    first = [body for _, body in posted[: len(world.deliveries) // 2]] + list(withdrawals.values())[:17]
    name = f"o{uuid.uuid4().hex[:10]}"
    with old_handler(database, name) as old, old_handler(database, f"{name}j") as judge:
        for handler in (old, judge):
            for deposit, owner in world.correlations.items():
                handler.handler.correlate(deposit, *owner)
        old.deliver_all(first)
        judge.deliver_all([*first, *(body for _, body in posted)])
        with RunningPipeline(tmp_path / "state", **own) as pipeline:
            _command(own, "import", "all", *_from(database_url, old))
            _post(pipeline, posted)
            expected = len({event_id for event_id, _ in posted})
            counted = (
                f'SELECT count(*) FROM "{installation.schema_name}".pg_webhook_inbox WHERE processed_at IS NOT NULL'
            )
            with pipeline.connect() as connection:
                await_true(
                    lambda: connection.execute(counted.encode()).fetchone() == (expected,),
                    SETTLE_SECONDS,
                    f"{expected} events to be applied",
                )
                left, before = effects(connection, installation.schema_name), effects(old.connection, name)
            told = effects(judge.connection, f"{name}j")
            assert set(before) & set(left) == set()
            assert sorted(before + left) == told
            _command(own, "compare", *_from(database_url, judge), "--settle-seconds", "0.5")
            _command(own, "audit")


def _from(database_url: str, handler: OldHandler) -> tuple[str, ...]:
    return "--from-database", database_url, "--from-schema", handler.schema


def _command(environment: Mapping[str, str], *arguments: str) -> None:
    done = run(arguments, environment)
    assert done.returncode == 0, done.stdout + done.stderr


def _post(pipeline: RunningPipeline, posted: list[tuple[str, bytes]]) -> None:
    key = SigningKey.from_text(pipeline.ready["signing_key"])
    poster = Poster(f"{pipeline.ready['ingress_url']}/webhooks")
    for event_id, body in posted:
        answer = poster.post(body, key.sign(event_id, int(time.time()), body))
        assert answer.status == 200, answer
    poster.close()
