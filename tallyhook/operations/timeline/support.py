"""What support sees of an object beside its page: each event and delivery, why, and the effects that left.

Personal data is shown as it is stored: this is for people who may see it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.rows import dict_row

from schemas.effects import EFFECTS
from tallyhook.operations.explain import EventEffect
from tallyhook.operations.timeline.arrivals import ArrivedEvent, in_order_of_arrival
from tallyhook.operations.timeline.catalogue import Language
from tallyhook.operations.timeline.chunk_fees import ChunkFees, check_fees
from tallyhook.operations.timeline.records import Record, TransactionRow, Withdrawal
from tallyhook.postgres import Connection, Queries


@dataclass(frozen=True, slots=True)
class CausedEffect:
    """An effect or balance entry of the object, and the event that caused it."""

    causation_id: str
    version: int
    effect: EventEffect


@dataclass(frozen=True, slots=True)
class SupportView:
    """What the stores hold of one object's history.

    Args:
        record: the rows of the object.
        events: in order of arrival.
        events_total: events in the inbox, shown or not.
        deliveries_total: deliveries of the shown events and those that were set aside, shown or not.
        effects: those that the outbox still has, in the order in which they were decided.
        transactions: movements of the gateway's ledger that name the object as their source.
        fees: the cross-check of the chunks' fees; None for what has no chunks.
    """

    record: Record
    events: tuple[ArrivedEvent, ...]
    events_total: int
    deliveries_total: int
    effects: tuple[CausedEffect, ...]
    transactions: tuple[TransactionRow, ...]
    fees: ChunkFees | None

    def by_version(self) -> list[ArrivedEvent]:
        """The events that have a version, in the order in which the object's state changed."""
        versioned = [(event.version, event.arrival, event) for event in self.events if event.version is not None]
        return [event for _, _, event in sorted(versioned, key=lambda one: one[:2])]


class SupportStore:
    """The tables of one installation.

    Args:
        topic_prefix: of the installation's topics, for the places of deliveries.
        limit: most events, later deliveries and set-aside deliveries of an object.
    """

    def __init__(self, connection: Connection, schema: str, topic_prefix: str, limit: int) -> None:
        self._connection = connection
        self._queries = Queries("tallyhook.operations.timeline", "support.sql", schema)
        self._events_topic = f"{topic_prefix}.events"
        self._limit = limit

    def read(
        self, object_id: str, record: Record, transactions: Sequence[TransactionRow], language: Language
    ) -> SupportView:
        """The history of an object whose record was read at the same moment."""
        inbox = self._rows("events", object_id=object_id)
        later = self._rows("redeliveries", event_ids=[row["event_id"] for row in inbox])
        set_aside = self._rows("quarantined", object_id=object_id)
        events = in_order_of_arrival(inbox, later, set_aside, self._events_topic, language)
        keys = list(_keys(object_id, record, (event.event_id for event in events if event.event_id is not None)))
        filled = {row["event_id"]: row["filled_raw"] for row in inbox if row["filled_raw"] is not None}
        return SupportView(
            record,
            events,
            _total(inbox),
            len(inbox) + _total(later) + _total(set_aside),
            tuple(_effect(row) for row in self._rows("effects", object_id=object_id, keys=keys)),
            tuple(transactions),
            check_fees(record, filled) if isinstance(record, Withdrawal) else None,
        )

    def _rows(self, query: str, **wanted: Any) -> list[dict[str, Any]]:
        with self._connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(self._queries[query], {"limit": self._limit} | wanted).fetchall()


def _total(rows: Sequence[dict[str, Any]]) -> int:
    return int(rows[0]["total"]) if rows else 0


def _keys(object_id: str, record: Record, event_ids: Iterable[str]) -> Iterator[str]:
    """Every dedupe key that an effect of the object can have: the outbox is searched by its index of keys."""
    for effect in EFFECTS:
        yield f"deposit:{object_id}:{effect}"
        yield f"withdrawal:{object_id}:{effect}"
    yield from (f"deposit:{object_id}:credit", f"deposit:{object_id}:debit")
    for event_id in event_ids:
        yield from (f"{event_id}:{effect}" for effect in EFFECTS)
    if isinstance(record, Withdrawal):
        for reversal in record.reversals:
            yield f"withdrawal-fill:{reversal.leg_ref}:reverse:compensate_reversed_fill"


def _effect(row: dict[str, Any]) -> CausedEffect:
    effect = EventEffect(row["topic"], row["dedupe_key"], row["partition"], row["seq"], row["payload"], row["sent"])
    return CausedEffect(row["causation_id"], row["version"], effect)
