"""A running pipeline as a case meets it: the gateway's posts at one end, tables and effect topics at the other."""

import http.client
import json
import os
import threading
import time
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from confluent_kafka import Message
from psycopg import sql

from schemas.headers import texts
from schemas.topics import TopicNames
from tallyhook import kafka
from tallyhook.gateway.signing import SigningKey
from tallyhook.settings import KafkaSettings
from tests.commands import Done, run
from tests.running import MERCHANT, RunningPipeline, await_true

PATIENCE_SECONDS = 60.0
READ_SECONDS = 30.0


class Shop:
    """What a case does with the pipeline, and what it can see of it."""

    def __init__(self, pipeline: RunningPipeline) -> None:
        ready = pipeline.ready
        self.pipeline = pipeline
        self.names = TopicNames(ready["topic_prefix"])
        self.kafka = KafkaSettings(bootstrap=ready["kafka_bootstrap"])
        self._netloc = urlsplit(ready["ingress_url"]).netloc
        self._key = SigningKey.from_text(ready["signing_key"])
        self._connection = pipeline.connect()
        self._connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(ready["schema"])))

    def post(self, *bodies: bytes) -> list[int]:
        """Posts one after the other over one connection; the statuses."""
        connection = http.client.HTTPConnection(self._netloc, timeout=PATIENCE_SECONDS)
        try:
            return [self._post(connection, body) for body in bodies]
        finally:
            connection.close()

    def post_at_once(self, bodies: Sequence[bytes], connections: int) -> list[int]:
        """Posts over so many connections that begin together; the statuses."""
        together = threading.Barrier(connections)

        def work(first: int) -> list[int]:
            together.wait(PATIENCE_SECONDS)
            return self.post(*bodies[first::connections])

        with ThreadPoolExecutor(connections) as pool:
            return [status for statuses in pool.map(work, range(connections)) for status in statuses]

    def rows(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        return self._connection.execute(statement.encode(), parameters or None).fetchall()

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

    def correlate(self, *deposits: str) -> Any:
        """What the merchant's service writes: order `ord_<id>`, user `usr_<id>`; gives the database's moment."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)"
                " VALUES (%s, %s, %s, %s)",
                [(deposit, f"ref_{deposit}", f"ord_{deposit}", f"usr_{deposit}") for deposit in deposits],
            )
            return self.rows("SELECT clock_timestamp()")[0][0]

    def verdicts(self, *events: str) -> list[tuple[str, str]]:
        """Each of these events with its verdict, once all of them are in the inbox and none of them waits."""
        query = "SELECT event_id, verdict FROM pg_webhook_inbox WHERE event_id = ANY(%s) AND processed_at IS NOT NULL"
        await_true(lambda: len(self.rows(query, list(events))) == len(events), PATIENCE_SECONDS, f"{events} processed")
        found = dict(self.rows(query, list(events)))
        return [(event, found[event]) for event in events]

    def effects(self, *deposits: str) -> list[tuple[str, str, dict[str, Any]]]:
        """Deposit, effect and payload of the outbox, in the order in which they were decided."""
        return [
            (deposit, topic, payload)
            for deposit, topic, payload in self.rows(
                "SELECT aggregateid, topic, payload FROM pg_outbox"
                " WHERE aggregateid = ANY(%s) AND topic <> 'balance_entry' ORDER BY partition, seq",
                list(deposits),
            )
        ]

    def published(self, topic: str, *subjects: str) -> list[Message]:
        """What a read_committed reader finds of these objects."""
        found = kafka.read_to_end(self.kafka, topic, timeout_seconds=READ_SECONDS)
        wanted = {subject.encode() for subject in subjects}
        return [message for message in found if message.key() in wanted]

    def credits(self, *deposits: str) -> dict[str, int]:
        """Satang by deposit, for those that were credited."""
        keys = {f"deposit:{deposit}:credit": deposit for deposit in deposits}
        entries = self.rows(
            "SELECT entry_key, amount_minor FROM pg_user_balance_entries WHERE entry_key = ANY(%s)", list(keys)
        )
        return {keys[key]: amount for key, amount in entries}

    def metric(self, unit: str, name: str) -> float:
        """The sum of a metric's samples."""
        with urllib.request.urlopen(self.pipeline.ready["metrics_urls"][unit], timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))

    def command(self, *arguments: str, **more: str) -> Done:
        """Runs `tallyhook` against the pipeline, as an operator does; keyword arguments are further variables."""
        ready = self.pipeline.ready
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
        environment |= {
            "TALLYHOOK_KAFKA_BOOTSTRAP": ready["kafka_bootstrap"],
            "TALLYHOOK_DATABASE_URL": ready["database_url"],
            "TALLYHOOK_INGRESS_MERCHANT_ID": MERCHANT,
        }
        return run(arguments, environment | more)

    def close_what_is_open(self) -> None:
        """Discards every open row, so that the next case finds nothing set aside."""
        ids = [str(row[0]) for row in self.rows("SELECT id FROM quarantined_events WHERE state = 'open'")]
        if ids:
            done = self.command(
                "quarantine", "resolve", *ids, "--discard", "--reason", "the case ends", "--actor", "case"
            )
            assert done.returncode == 0, done.stderr

    def close(self) -> None:
        """Closes the connection of this object; the pipeline runs on."""
        self._connection.close()

    def _post(self, connection: http.client.HTTPConnection, body: bytes) -> int:
        connection.request(
            "POST", "/webhooks", body, self._key.sign(f"msg_{time.monotonic_ns()}", int(time.time()), body)
        )
        answer = connection.getresponse()
        answer.read()
        return answer.status


def header_of(message: Message, name: str) -> str:
    """One header of a record as text."""
    return texts(kafka.headers_of(message))[name]


def event(event_id: str, deposit: str, version: object, status: str, **members: Any) -> dict[str, Any]:
    """A deposit's event; settled and reversed ones get five amounts that agree."""
    entity: dict[str, Any] = {"id": deposit, "object": "deposit_order", "version": version, "status": status}
    if status in ("settled", "reversed"):
        entity |= money(ordered=50_000, transferred=50_000, fee=750)
    return {
        "id": event_id,
        "object": "event",
        "type": f"deposit.{status}",
        "api_version": "2026-01-01",
        "livemode": True,
        "created_at": "2026-03-02T10:04:41Z",
        "sequence": 1,
        "account": {"merchant_id": MERCHANT, "white_label_id": None},
        "data": {"object": entity | members, "previous_attributes": {}},
    }


def deposit_body(event_id: str, deposit: str, version: object, status: str, **members: Any) -> bytes:
    """The same as bytes, in UTF-8."""
    return json.dumps(event(event_id, deposit, version, status, **members), ensure_ascii=False).encode()


def money(*, ordered: int, transferred: int, fee: int) -> dict[str, int]:
    """The five amounts of a deposit, in satang, as the gateway reckons them."""
    received = min(ordered, transferred)
    return {
        "ordered_amount_minor": ordered,
        "transferred_amount_minor": transferred,
        "amount_received_minor": received,
        "fee_total_minor": fee,
        "credited_amount_minor": received - fee,
    }
