"""What the demo reads of the installation it plays with: rows of the tables, and effects as a consumer gets them."""

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from psycopg import sql

from schemas.effects import EFFECTS
from schemas.headers import texts
from schemas.topics import TopicNames
from tallyhook import kafka
from tallyhook.errors import TallyhookError
from tallyhook.postgres import Connection
from tallyhook.settings import KafkaSettings

PATIENCE_SECONDS = 60.0


class Effect(Protocol):
    """What two effects are compared by."""

    @property
    def effect(self) -> str:
        """Its name."""

    @property
    def subject(self) -> str:
        """The object's id."""

    @property
    def dedupe_key(self) -> str:
        """Its idempotency key."""

    @property
    def payload(self) -> dict[str, Any]:
        """What it says."""


@dataclass(frozen=True, slots=True)
class ReadEffect:
    """An effect as a plain read_committed consumer gets it.

    Args:
        cause: id of the event that led to it.
        partition, number: its place in the outbox.
    """

    effect: str
    subject: str
    dedupe_key: str
    payload: dict[str, Any]
    cause: str
    partition: int
    number: int

    @property
    def position(self) -> str:
        """Its place in the outbox as one word."""
        return f"{self.partition}/{self.number}"


class Stores:
    """Tables and effect topics of one installation.

    Args:
        connection: autocommit, used by nobody else.
    """

    def __init__(self, connection: Connection, schema: str, topics: TopicNames, kafka_settings: KafkaSettings) -> None:
        self.connection, self.schema = connection, schema
        self._topics, self._kafka = topics, kafka_settings

    def correlate(self, deposit: str, reference: str, order: str, user: str) -> None:
        """Plays the merchant's own service."""
        self.connection.execute(self._statement("correlate"), (deposit, reference, order, user))

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """The rows of a statement below."""
        return self.connection.execute(self._statement(query), parameters).fetchall()

    def count(self, query: str, *parameters: object) -> int:
        """The only value of a statement below."""
        return int(self.rows(query, *parameters)[0][0])

    def await_count(self, query: str, wanted: int, what: str) -> None:
        """Waits until the count is reached; raises TallyhookError after a minute."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.count(query) < wanted:
            if time.monotonic() > deadline:
                raise TallyhookError(f"waited {PATIENCE_SECONDS:g} s for {what}; look at the logs of the stages")
            time.sleep(0.05)

    def effects(self) -> list[ReadEffect]:
        """Every record of the effect topics, once as many are there as the outbox has rows."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        wanted = self.count("outbox_rows")
        while True:
            found = self._effects_now()
            if len(found) >= wanted:
                return found
            if time.monotonic() > deadline:
                raise TallyhookError(
                    f"the relay published {len(found)} of {wanted} outbox rows in {PATIENCE_SECONDS:g} s"
                )
            time.sleep(0.2)

    def _effects_now(self) -> list[ReadEffect]:
        found = []
        for topic in (*(self._topics.effect(name) for name in EFFECTS), self._topics.balance_entries):
            for message in kafka.read_to_end(self._kafka, topic, timeout_seconds=20):
                headers = texts(kafka.headers_of(message))
                found.append(
                    ReadEffect(
                        headers["ce_type"],
                        headers["ce_subject"],
                        headers["ce_id"],
                        json.loads(message.value() or b"null"),
                        headers["ce_causationid"],
                        int(headers["ce_outboxpartition"]),
                        int(headers["ce_outboxseq"]),
                    )
                )
        return found

    def _statement(self, name: str) -> sql.Composed:
        return sql.SQL(_STATEMENTS[name]).format(schema=sql.Identifier(self.schema))


def compare_effects(got: Sequence[Effect], must: Sequence[Effect]) -> list[str]:
    """A sentence for each effect that came too often, not at all, or other than it must be."""
    found, wanted = _counted(got), _counted(must)
    return [
        *(f"effect too many, or other than it must be: {effect}" for effect in (found - wanted).elements()),
        *(f"effect missing: {effect}" for effect in (wanted - found).elements()),
    ]


def _counted(effects: Sequence[Effect]) -> Counter[tuple[str, str, str, str]]:
    """How often each effect is there; the payload as text with sorted keys."""
    return Counter((e.effect, e.subject, e.dedupe_key, json.dumps(e.payload, sort_keys=True)) for e in effects)


_STATEMENTS = {
    "correlate": "INSERT INTO {schema}.pg_deposit_correlations"
    " (pg_deposit_id, merchant_reference, our_order_id, our_user_id) VALUES (%s, %s, %s, %s)",
    "parked_event": "SELECT count(*) FROM {schema}.pg_webhook_inbox WHERE parked_reason = 'correlation'",
    "judged": "SELECT (SELECT count(*) FROM {schema}.pg_webhook_inbox WHERE processed_at IS NOT NULL)"
    " + (SELECT count(*) FROM {schema}.redeliveries) + (SELECT count(*) FROM {schema}.quarantined_events)",
    "verdicts": "SELECT event_id, verdict, reason FROM (SELECT event_id, verdict, reason, source_offset"
    " FROM {schema}.pg_webhook_inbox UNION ALL SELECT event_id, verdict, 'seen_before', source_offset"
    " FROM {schema}.redeliveries) AS d ORDER BY source_offset",
    "balances": "SELECT user_id, balance_minor FROM {schema}.pg_user_balances ORDER BY user_id",
    "flags": "SELECT claim_id, pg_deposit_id, observed_deposit_version, amount_minor"
    " FROM {schema}.pg_deposit_overpayment_flags",
    "outbox_rows": "SELECT count(*) FROM {schema}.pg_outbox",
}
