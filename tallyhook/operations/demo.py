"""Plays the demo's story against a running pipeline and compares what came of it with what must."""

import http.client
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from psycopg import sql

from schemas.effects import EFFECTS
from schemas.headers import texts
from schemas.topics import TopicNames
from tallyhook import kafka
from tallyhook.errors import TallyhookError
from tallyhook.gateway.signing import SigningKey
from tallyhook.operations import demo_story as story
from tallyhook.postgres import Connection
from tallyhook.settings import KafkaSettings

PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class PlayedDelivery:
    """One POST and what became of it."""

    delivery: story.StoryDelivery
    status: int
    verdict: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class ReadEffect:
    """An effect as a plain read_committed consumer gets it."""

    effect: str
    subject: str
    dedupe_key: str
    payload: dict[str, Any]
    position: str


@dataclass
class Outcome:
    """What the demo saw, and where it differs from what must be (empty: it all agrees)."""

    deliveries: list[PlayedDelivery] = field(default_factory=list)
    balances: dict[str, int] = field(default_factory=dict)
    flags: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    effects: list[ReadEffect] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


class Play:
    """One run of the story.

    Args:
        ingress_url: base URL of the door.
        key: signs as the gateway would.
        connection: to the installation's database.
        schema: the installation's schema.
        topics: the installation's topics.
        kafka_settings: for the reader of the effects.
    """

    def __init__(
        self,
        ingress_url: str,
        key: SigningKey,
        connection: Connection,
        schema: str,
        topics: TopicNames,
        kafka_settings: KafkaSettings,
    ) -> None:
        self._address = urlsplit(ingress_url).netloc
        self._key, self._connection, self._schema = key, connection, schema
        self._topics, self._kafka = topics, kafka_settings

    def run(self, on_posted: Callable[[story.StoryDelivery, int], None]) -> Outcome:
        """Posts, waits until everything was judged and published, reads, compares."""
        for deposit in story.CORRELATIONS:
            if deposit != story.UNKNOWN_AT_FIRST:
                self._correlate(deposit)
        statuses = []
        for delivery in story.DELIVERIES:
            status = self._post(delivery)
            statuses.append(status)
            on_posted(delivery, status)
            if delivery.correlate_after:
                self._await_rows("parked_event", 1, "the event to be parked")
                self._correlate(story.UNKNOWN_AT_FIRST)
        accepted = sum(1 for status in statuses if status == http.client.OK)
        self._await_rows("judged", accepted, "every delivery to be judged")
        outcome = Outcome(deliveries=self._judged(statuses))
        outcome.balances = dict(self._rows("balances"))
        outcome.flags = {claim: (deposit, version, amount) for claim, deposit, version, amount in self._rows("flags")}
        outcome.effects = self._read_effects()
        outcome.differences = compare(outcome)
        return outcome

    def _post(self, delivery: story.StoryDelivery) -> int:
        body = story.EVENTS[delivery.event].body
        headers = self._key.sign(delivery.event, int(time.time()), body)
        if delivery.forged:
            body = body.replace(b"500000", b"900000", 1)
        connection = http.client.HTTPConnection(self._address, timeout=15)
        try:
            connection.request("POST", "/webhooks", body, headers | {"content-type": "application/json"})
            return connection.getresponse().status
        except OSError as failure:
            raise TallyhookError(
                f"event {delivery.event} could not be posted to {self._address}: {failure}"
            ) from failure
        finally:
            connection.close()

    def _correlate(self, deposit: str) -> None:
        self._connection.execute(self._statement("correlate"), (deposit, *story.CORRELATIONS[deposit]))

    def _judged(self, statuses: list[int]) -> list[PlayedDelivery]:
        """Joins the deliveries of an event, in their order, with what the stores say of it in theirs."""
        verdicts: dict[str, list[tuple[str, str | None]]] = defaultdict(list)
        for event_id, verdict, reason in self._rows("verdicts"):
            verdicts[event_id].append((verdict, reason))
        played = []
        for delivery, status in zip(story.DELIVERIES, statuses, strict=True):
            waiting = verdicts[delivery.event] if status == http.client.OK else []
            verdict, reason = waiting.pop(0) if waiting else (None, None)
            played.append(PlayedDelivery(delivery, status, verdict, reason))
        return played

    def _read_effects(self) -> list[ReadEffect]:
        """Every record of the effect topics, once as many are there as the outbox has rows."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        wanted = int(self._rows("outbox_rows")[0][0])
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
                        f"{headers['ce_outboxpartition']}/{headers['ce_outboxseq']}",
                    )
                )
        return found

    def _await_rows(self, query: str, wanted: int, what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while int(self._rows(query)[0][0]) < wanted:
            if time.monotonic() > deadline:
                raise TallyhookError(f"waited {PATIENCE_SECONDS:g} s for {what}; look at the logs of the stages")
            time.sleep(0.05)

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(self._statement(query)).fetchall()

    def _statement(self, name: str) -> sql.Composed:
        return sql.SQL(_STATEMENTS[name]).format(schema=sql.Identifier(self._schema))


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


def compare(outcome: Outcome) -> list[str]:
    """Every difference between what came and what stands in the story; a sentence each."""
    differences = []
    for played in outcome.deliveries:
        wanted = played.delivery
        got, must = (played.status, played.verdict, played.reason), (wanted.status, wanted.verdict, wanted.reason)
        if got != must:
            differences.append(f"{wanted.event} ({wanted.note}): {got} instead of {must}")
    if outcome.balances != story.BALANCES:
        differences.append(f"balances: {outcome.balances} instead of {story.BALANCES}")
    if outcome.flags != story.FLAGS:
        differences.append(f"overpayment flags: {outcome.flags} instead of {story.FLAGS}")
    got_effects, must_effects = _counted(outcome.effects), _counted(story.EFFECTS)
    differences += [f"effect too many, or other than it must be: {e}" for e in got_effects - must_effects]
    differences += [f"effect missing: {e}" for e in must_effects - got_effects]
    return differences


def _counted(effects: Sequence[ReadEffect | story.StoryEffect]) -> Counter[tuple[str, str, str, str]]:
    """How often each effect is there; the payload as text with sorted keys."""
    return Counter((e.effect, e.subject, e.dedupe_key, json.dumps(e.payload, sort_keys=True)) for e in effects)
