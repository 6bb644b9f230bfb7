"""A database that loses its last commits under traffic: nothing is lost, doubled or skipped, and the way out works."""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from schemas.topics import TopicNames
from tallyhook.gateway.signing import SigningKey
from tallyhook.gateway.world.model import Correlation
from tallyhook.kafka import producer
from tallyhook.settings import Installation, KafkaSettings
from tests.chaos.ending import check_effects, check_load
from tests.chaos.gateway import Gateway
from tests.chaos.load import Delivery, make_load
from tests.commands import Done, run
from tests.integration.relay.effect_reader import sent
from tests.integration.relay.losing_database import LosingDatabase
from tests.running import MERCHANT, RunningPipeline, await_true

OBJECTS, RATE = 90, 300
PATIENCE_SECONDS = 90.0


@pytest.mark.timeout(600)
def test_a_failover_that_loses_commits(tmp_path: Path, kafka_bootstrap: str, installation: Installation) -> None:
    """The relay stops with the lost rows named; the sink makes them again; the command finds what was sent among them,
    the relay goes on by itself, and the audit is clean."""
    load = make_load(7, OBJECTS, late_by=40)
    third = len(load.deliveries) // 3
    known = [one for one in load.world.correlations if one.written_at is not None]
    with LosingDatabase(tmp_path / "database") as database:
        place = {
            "TALLYHOOK_KAFKA_BOOTSTRAP": kafka_bootstrap,
            "TALLYHOOK_DATABASE_URL": database.url,
            "TALLYHOOK_TOPIC_PREFIX": installation.topic_prefix,
            "TALLYHOOK_SCHEMA": installation.schema_name,
        }
        with RunningPipeline(tmp_path / "state", **place) as pipeline:
            road = Road(pipeline, place, set(load.world.expected.processed))
            road.post(load.deliveries[:third])
            road.correlate(known[::3])
            road.await_sent()
            database.keep()

            road.correlate(known[1::3])
            road.post(load.deliveries[third : 2 * third])
            road.await_sent()
            before, sent_before = road.heads(), road.seen()
            database.lose()
            assert sum(road.heads().values()) < sum(before.values()), "nothing was lost"

            road.post(load.deliveries[2 * third :])
            reason = road.await_stopped()
            assert "outbox rewound: partition " in reason
            assert "tallyhook relay recover" in reason
            assert road.seen() == sent_before

            # Whatever the merchant's service had written into the table went with it; the topic still has the rest.
            road.await_made_again()
            report = json.loads(road.recover("--json").stdout)
            missing = [effect for one in report["partitions"] for effect in one["missing"]]
            assert {effect["object_id"] for effect in missing} <= {one.pg_deposit_id for one in known[1::3][::2]}
            assert len({effect["why"] for effect in missing}) == 1
            assert "the deposit's correlation, which was lost with the database" in missing[0]["why"]
            assert [one["differing"] for one in report["partitions"] if one["differing"]] == []
            refused = road.recover("--confirm")
            assert (refused.returncode, "nothing was changed" in refused.stdout) == (1, True)
            road.correlate(known)
            await_true(lambda: road.recover().returncode == 0, PATIENCE_SECONDS, "everything to be there again")

            stopped_at = road.seen()
            done = road.recover("--confirm", "--json")
            assert done.returncode == 0
            assert json.loads(done.stdout)["mended"] is True
            await_true(lambda: pipeline.answers("relay"), PATIENCE_SECONDS, "the relay to go on by itself")
            check_load(pipeline, load, PATIENCE_SECONDS)
            road.await_sent()
            check_effects(pipeline, PATIENCE_SECONDS)
            assert stopped_at.items() <= road.seen().items()
            assert road.counterexamples() == []


class Road:
    """Traffic through a running pipeline, and looks at what came of it.

    Args:
        place: the installation as environment variables.
        expected: ids of the events that end as processed.
    """

    def __init__(self, pipeline: RunningPipeline, place: dict[str, str], expected: set[str]) -> None:
        self._pipeline, self._schema, self._expected = pipeline, place["TALLYHOOK_SCHEMA"], expected
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
        self._environment = kept | place | {"TALLYHOOK_INGRESS_MERCHANT_ID": MERCHANT}
        self._names = TopicNames(place["TALLYHOOK_TOPIC_PREFIX"])
        self._kafka = KafkaSettings(bootstrap=place["TALLYHOOK_KAFKA_BOOTSTRAP"])
        self._producer = producer(
            self._kafka, linger_ms=5, delivery_timeout_seconds=30, on_fatal=lambda error: pytest.fail(error.str())
        )
        self._posted: set[str] = set()
        self._published: set[str] = set()

    def post(self, deliveries: Sequence[Delivery]) -> None:
        """Returns when each was answered with 200."""
        ready = self._pipeline.ready
        gateway = Gateway(urlsplit(ready["ingress_url"]).netloc, SigningKey.from_text(ready["signing_key"]), RATE)
        gateway.start(deliveries)
        gateway.join(PATIENCE_SECONDS)
        self._posted |= {delivery.id for delivery in deliveries}

    def correlate(self, rows: Sequence[Correlation]) -> None:
        """As the merchant's service does: every second one into the table, the others through the topic."""
        members = ("pg_deposit_id", "merchant_reference", "our_order_id", "our_user_id")
        with psycopg.connect(self._pipeline.ready["database_url"], autocommit=True) as connection:
            connection.cursor().executemany(
                f"INSERT INTO {self._schema}.pg_deposit_correlations ({', '.join(members)}) VALUES (%s, %s, %s, %s)"
                " ON CONFLICT DO NOTHING",
                [tuple(getattr(one, name) for name in members) for one in rows[::2]],
            )
        for one in rows[1::2]:
            value = json.dumps({name: getattr(one, name) for name in members})
            self._producer.produce(self._names.deposit_correlations, value, one.pg_deposit_id)
        assert self._producer.flush(30) == 0
        self._published |= {one.pg_deposit_id for one in rows[1::2]}

    def await_sent(self) -> None:
        """Every event that was posted is in the inbox, and every outbox row is sent, as far as the database knows."""
        self._await_known(self._posted & self._expected)
        behind = (
            "SELECT count(*) FROM {s}.pg_outbox o JOIN {s}.relay_cursors c USING (partition) WHERE o.seq > c.sent_seq"
        )
        await_true(lambda: self._rows(behind) == [(0,)], PATIENCE_SECONDS, "the relay to send all")

    def await_made_again(self) -> None:
        """The sink has every event that was posted, and every correlation that came through the topic."""
        self._await_known(self._posted & self._expected)
        there = "SELECT count(*) FROM {s}.pg_deposit_correlations WHERE pg_deposit_id = ANY(%s)"
        ids = list(self._published)
        await_true(lambda: self._rows(there, ids) == [(len(ids),)], PATIENCE_SECONDS, "the topic's correlations")
        waits = (
            "SELECT count(*) FROM {s}.pg_webhook_inbox i JOIN {s}.pg_deposit_correlations c"
            " ON c.pg_deposit_id = i.object_id WHERE i.processed_at IS NULL"
        )
        await_true(lambda: self._rows(waits) == [(0,)], PATIENCE_SECONDS, "what waits for no correlation")

    def await_stopped(self) -> str:
        """What the relay says once it stands still."""
        found: list[str] = []

        def stopped() -> bool:
            try:
                with urllib.request.urlopen(self._readyz(), timeout=2):
                    return False
            except urllib.error.HTTPError as refused:
                found[:] = json.load(refused)["reasons"]
                return "outbox rewound" in found[0]
            except OSError:
                return False

        await_true(stopped, PATIENCE_SECONDS, "the relay to notice the loss")
        return found[0]

    def heads(self) -> dict[int, int]:
        """The newest outbox number by partition."""
        return dict(self._rows("SELECT partition, max(seq) FROM {s}.pg_outbox GROUP BY partition"))

    def seen(self) -> dict[str, tuple[int, int]]:
        """Partition and number by dedupe key, as readers get them; fails where one came twice."""
        return sent(self._kafka, self._names)

    def recover(self, *options: str) -> Done:
        """The command as an operator types it."""
        return run(("relay", "recover", *options), self._environment)

    def counterexamples(self) -> list[str]:
        """What the audit finds."""
        shown = run(("audit", "--json"), self._environment)
        assert shown.stdout, shown.stderr
        report = json.loads(shown.stdout)
        return [example["text"] for check in report["checks"] for example in check["examples"]]

    def _readyz(self) -> str:
        return str(self._pipeline.ready["metrics_urls"]["relay"]).replace("/metrics", "/readyz")

    def _await_known(self, ids: set[str]) -> None:
        there = "SELECT count(*) FROM {s}.pg_webhook_inbox WHERE event_id = ANY(%s)"
        await_true(lambda: self._rows(there, list(ids)) == [(len(ids),)], PATIENCE_SECONDS, f"{len(ids)} known events")

    def _rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._pipeline.ready["database_url"], autocommit=True) as connection:
            return connection.execute(query.replace("{s}", self._schema).encode(), parameters or None).fetchall()
