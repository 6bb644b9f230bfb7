"""The reference handler: one event, one transaction, over the same tables as the sink and with none of its code."""

import itertools
import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from psycopg import sql

from tallyhook.postgres import Connection
from tests.reference.deposits import apply_deposit
from tests.reference.outcomes import Outcome
from tests.reference.reading import Json, Refused, check_deposit, read
from tests.reference.transactions import apply_immutable
from tests.reference.withdrawal_checks import check_transaction, check_withdrawal
from tests.reference.withdrawals import apply_withdrawal, can_build

RECORD = """
  INSERT INTO pg_webhook_inbox (event_id, event_type, event_raw, received_at, parked_reason, object_id, object_kind,
                                version, merchant_id, sequence, partition, arrival_seq, source_partition,
                                source_offset, verdict, key_id, origin)
  VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, 'parked', %s, %s)
  ON CONFLICT (event_id) DO NOTHING
"""

REDELIVERED = """
  INSERT INTO redeliveries (event_id, source_partition, source_offset, received_at, verdict)
  SELECT event_id, %(partition)s, %(offset)s, %(received_at)s, 'redelivered' FROM pg_webhook_inbox
   WHERE event_id = %(event_id)s AND NOT (source_partition = %(partition)s AND source_offset = %(offset)s)
  ON CONFLICT DO NOTHING
"""

PROCESSED = """
  UPDATE pg_webhook_inbox SET processed_at = now(), parked_reason = NULL, verdict = %s, reason = %s
   WHERE event_id = %s AND processed_at IS NULL
"""

CORRELATION = """
  SELECT our_order_id, our_user_id,
         EXISTS (SELECT FROM pg_webhook_inbox i
                  WHERE i.object_id = %(object_id)s AND i.partition = %(partition)s
                    AND i.parked_reason = 'correlation' AND i.event_id <> %(event_id)s)
    FROM pg_deposit_correlations WHERE pg_deposit_id = %(object_id)s
"""

PARKED = """
  SELECT i.event_raw, i.event_id, i.object_id, i.partition, i.source_partition, i.source_offset, i.received_at,
         i.key_id, i.origin, c.our_order_id, c.our_user_id
    FROM pg_webhook_inbox i
    LEFT JOIN pg_deposit_correlations c ON c.pg_deposit_id = i.object_id
    LEFT JOIN pg_withdrawals w ON w.pg_withdrawal_id = i.object_id
   WHERE i.processed_at IS NULL AND (%(object_ids)s::text[] IS NULL OR i.object_id = ANY (%(object_ids)s::text[]))
     AND CASE i.parked_reason WHEN 'correlation' THEN c.pg_deposit_id ELSE w.pg_withdrawal_id END IS NOT NULL
   ORDER BY i.arrival_seq, i.partition
"""

EFFECT = """
  INSERT INTO pg_outbox (partition, seq, aggregatetype, aggregateid, type, topic, payload, dedupe_key, causation_id,
                         version, received_at)
  VALUES (%s, %s, %s, %s, %s, %s, %s::jsonb, %s, %s, %s, %s)
  ON CONFLICT (dedupe_key) DO NOTHING
"""

HAS_ROW = "SELECT 1 FROM pg_withdrawals WHERE pg_withdrawal_id = %s"

QUARANTINE = """
  INSERT INTO quarantined_events (stage, reason, detail, event_id, object_id, raw, headers, source_topic,
                                  source_partition, source_offset)
  VALUES ('sinks', %s, %s, %s, %s, %s, %s::jsonb, %s, %s, %s)
  ON CONFLICT ON CONSTRAINT quarantined_events_source_uk DO NOTHING
"""

# It was set aside once and is in the inbox now; the same id of another object is another matter.
RESOLVED = """
  UPDATE quarantined_events SET state = 'redriven' WHERE event_id = %s AND object_id = %s AND state = 'open'
"""

WAITS_FOR = {"deposit_order": "correlation", "withdrawal_order": "snapshot"}
"""What an event of a kind may have to wait for."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the door knows of a delivery beside its bytes.

    Args:
        partition: the partition of the object.
        source_partition, source_offset: the delivery's identity, its place in the events topic.
        received_at: when the door had the request.
        headers: record headers, kept with what is quarantined.
    """

    event_id: str
    object_id: str
    partition: int
    source_partition: int
    source_offset: int
    received_at: datetime
    key_id: str = "reference"
    origin: str = "webhook"
    source_topic: str = "events"
    headers: dict[str, str] = field(default_factory=dict)


class Handler:
    """The whole hand-written service behind the door.

    Args:
        connection: autocommit; it is used for nothing else, and its search_path is set.
        schema: the installation's schema.
        livemode: the mode of this installation; events of the other are set aside.
    """

    def __init__(self, connection: Connection, schema: str, *, livemode: bool = True) -> None:
        self._connection = connection
        self._livemode = livemode
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
        arrivals = connection.execute("SELECT partition, max(arrival_seq) + 1 FROM pg_webhook_inbox GROUP BY 1")
        self._next_arrival: Counter[int] = Counter(dict(arrivals.fetchall()))
        numbered = connection.execute("SELECT coalesce(max(seq) + 1, 0) FROM pg_outbox").fetchone()
        self._outbox_numbers = itertools.count(numbered[0] if numbered is not None else 0)

    def deliver(self, body: bytes, delivery: Delivery) -> str:
        """Handles one delivery and gives the verdict: advanced, late, immutable, redelivered, parked or quarantined."""
        try:
            event = read(body)
            if event.get("livemode") is not self._livemode:
                raise Refused("wrong_livemode", f"livemode is {event.get('livemode')}")
            check(event)
            with self._connection.transaction():
                if not self._record(body, event, delivery):
                    return "redelivered"
                self._connection.execute(RESOLVED, (event["id"], delivery.object_id))
                verdict = self._apply(event, delivery)
            self._next_arrival[delivery.partition] += 1
        except Refused as refusal:
            with self._connection.transaction():
                self._quarantine(body, delivery, refusal)
            return "quarantined"
        if verdict in ("next in line", "built"):
            self.look_for_parked([delivery.object_id])
            return self._verdict_of(event["id"])
        return verdict

    def correlate(self, pg_deposit_id: str, merchant_reference: str, our_order_id: str, our_user_id: str) -> None:
        """What the merchant's own service does when its create call returns."""
        self._connection.execute(
            "INSERT INTO pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)"
            " VALUES (%s, %s, %s, %s)",
            (pg_deposit_id, merchant_reference, our_order_id, our_user_id),
        )

    def look_for_parked(self, object_ids: Collection[str] | None = None) -> int:
        """Applies what waited for a correlation or a row that is there now, in first-arrival order; gives how many.

        Arrivals are numbered by partition, as an object never leaves its own; between objects of two partitions there
        is no first.

        Args:
            object_ids: only these objects; None for all.
        """
        chosen = None if object_ids is None else list(object_ids)
        waiting = self._connection.execute(PARKED, {"object_ids": chosen}).fetchall()
        for raw, *known, our_order_id, our_user_id in waiting:
            event_id, object_id, partition, source_partition, source_offset, received_at, key_id, origin = known
            delivery = Delivery(
                event_id, object_id, partition, source_partition, source_offset, received_at, key_id, origin
            )
            try:
                with self._connection.transaction():
                    self._process(json.loads(raw), delivery, our_order_id, our_user_id)
            except Refused as refusal:
                with self._connection.transaction():
                    self._connection.execute("DELETE FROM pg_webhook_inbox WHERE event_id = %s", (event_id,))
                    self._quarantine(raw.encode(), delivery, refusal)
        return len(waiting)

    def _record(self, body: bytes, event: Json, delivery: Delivery) -> bool:
        o = event["data"]["object"]
        recorded = self._connection.execute(
            RECORD,
            (
                *(event["id"], event["type"], body.decode(), delivery.received_at),
                *(WAITS_FOR.get(o["object"], "correlation"), o["id"], o["object"]),
                *(o.get("version"), event["account"]["merchant_id"], event["sequence"]),
                *(
                    delivery.partition,
                    self._next_arrival[delivery.partition],
                    delivery.source_partition,
                    delivery.source_offset,
                ),
                *(delivery.key_id, delivery.origin),
            ),
        ).rowcount
        if recorded == 0:
            place = {"partition": delivery.source_partition, "offset": delivery.source_offset}
            self._connection.execute(
                REDELIVERED, {"event_id": event["id"], "received_at": delivery.received_at, **place}
            )
        return recorded == 1

    def _apply(self, event: Json, delivery: Delivery) -> str:
        match event["data"]["object"]["object"]:
            case "deposit_order":
                return self._apply_deposit(event, delivery)
            case "withdrawal_order":
                return self._apply_withdrawal(event, delivery)
            case "balance_transaction":
                return self._finish(event, apply_immutable(self._connection, event))
            case _:
                immutable = event["data"]["object"].get("version") is None
                return self._finish(event, ("immutable" if immutable else "advanced", "no_handler"))

    def _apply_deposit(self, event: Json, delivery: Delivery) -> str:
        object_id = event["data"]["object"]["id"]
        place = {"object_id": object_id, "partition": delivery.partition, "event_id": event["id"]}
        correlation = self._connection.execute(CORRELATION, place).fetchone()
        if correlation is None:
            return "parked"
        our_order_id, our_user_id, others_wait = correlation
        if others_wait:
            # They came first; this one stands last in the same queue, and each has its own transaction.
            return "next in line"
        return self._process(event, delivery, our_order_id, our_user_id)

    def _apply_withdrawal(self, event: Json, delivery: Delivery) -> str:
        object_id = event["data"]["object"]["id"]
        if self._connection.execute(HAS_ROW, (object_id,)).fetchone() is not None:
            return self._process(event, delivery)
        if not can_build(event):
            return "parked"
        self._process(event, delivery)
        # Those that wait come after it, each in its own transaction.
        return "built"

    def _process(self, event: Json, delivery: Delivery, *correlation: str) -> str:
        """Applies an event that waits for nothing; a deposit's correlation is our_order_id and our_user_id."""
        o = event["data"]["object"]
        kind = o["object"].removesuffix("_order")

        def enqueue(topic: str, payload: Json, dedupe_key: str) -> None:
            self._connection.execute(
                EFFECT,
                (
                    *(delivery.partition, next(self._outbox_numbers), kind, o["id"], topic, topic, json.dumps(payload)),
                    *(dedupe_key, event["id"], o["version"], delivery.received_at),
                ),
            )

        if o["object"] == "withdrawal_order":
            return self._finish(event, apply_withdrawal(self._connection, event, enqueue))
        our_order_id, our_user_id = correlation
        return self._finish(event, apply_deposit(self._connection, event, (our_order_id, our_user_id), enqueue))

    def _finish(self, event: Json, outcome: Outcome) -> str:
        verdict, reason = outcome
        self._connection.execute(PROCESSED, (verdict, reason, event["id"]))
        return verdict

    def _quarantine(self, body: bytes, delivery: Delivery, refusal: Refused) -> None:
        self._connection.execute(
            QUARANTINE,
            (
                *(refusal.reason, refusal.detail, delivery.event_id, delivery.object_id, body),
                *(json.dumps(delivery.headers), delivery.source_topic),
                *(delivery.source_partition, delivery.source_offset),
            ),
        )

    def _verdict_of(self, event_id: str) -> str:
        row = self._connection.execute(
            "SELECT verdict FROM pg_webhook_inbox WHERE event_id = %s", (event_id,)
        ).fetchone()
        return "quarantined" if row is None else str(row[0])


def check(event: Json) -> None:
    """Raises Refused unless the event fulfils the rules of its kind; a kind without rules passes."""
    match event["data"]["object"]["object"]:
        case "deposit_order":
            check_deposit(event)
        case "withdrawal_order":
            check_withdrawal(event)
        case "balance_transaction":
            check_transaction(event)
