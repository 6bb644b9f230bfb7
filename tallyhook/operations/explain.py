"""Why an event had, or had not, an effect: each delivery, its verdict, and the reason in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast

import psycopg
from psycopg.rows import dict_row

from schemas.events import BALANCE_TRANSACTION_KIND, DEPOSIT_KIND, WITHDRAWAL_KIND
from schemas.reasons import REASONS, Explanation, Reason
from tallyhook.postgres import Connection, Queries

Language = Literal["en", "th"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery of the event and what was decided.

    Args:
        at: when the door had it.
        source: its place, `topic[partition]@offset`.
        why: the reason as a sentence.
        next_step: what a person can do; empty when nothing is to be done.
    """

    at: datetime
    source: str
    verdict: str
    reason: str | None
    why: str
    next_step: str


@dataclass(frozen=True, slots=True)
class EventEffect:
    """An effect that the event caused."""

    topic: str
    dedupe_key: str
    partition: int
    seq: int
    payload: dict[str, Any]
    sent: bool


@dataclass(frozen=True, slots=True)
class EventExplanation:
    """Everything the stores know of one event; `object_now` is its object's row, where there is one."""

    event_id: str
    event_type: str | None
    object_id: str | None
    object_kind: str | None
    version: int | None
    sequence: int | None
    key_id: str | None
    deliveries: list[Delivery]
    effects: list[EventEffect]
    object_now: dict[str, Any] | None


_SENTENCES: dict[str, Explanation] = {
    "advanced": Explanation(
        "It was newer than anything seen of its object, so its values were taken.",
        "ใหม่กว่าทุก event ที่เคยเห็นของรายการนี้ จึงใช้ค่าตามนี้",
        "",
    ),
    "immutable": Explanation("Recorded; its object has no versions.", "บันทึกแล้ว ข้อมูลชนิดนี้ไม่มี version", ""),
}

_ROWS = {DEPOSIT_KIND: "deposit", WITHDRAWAL_KIND: "withdrawal", BALANCE_TRANSACTION_KIND: "transaction"}
"""The statement that reads an object's row, by its kind."""


def explain(
    connection: Connection, schema: str, topic_prefix: str, event_id: str, language: Language
) -> EventExplanation | None:
    """Reads what is known of an event; None when the stores have never seen it."""
    queries = Queries("tallyhook.operations", "explain.sql", schema)
    key = {"event_id": event_id}
    with connection.cursor(row_factory=dict_row) as cursor:
        inbox = cursor.execute(queries["inbox"], key).fetchone()
        later = cursor.execute(queries["redeliveries"], key).fetchall()
        quarantined = cursor.execute(queries["quarantined"], key).fetchall()
        if inbox is None and not quarantined:
            return None
        effects = cursor.execute(queries["effects"], key).fetchall()
        object_id = inbox["object_id"] if inbox else quarantined[-1]["object_id"]
        now = _object_now(cursor, queries, inbox["object_kind"] if inbox else None, object_id)
    deliveries = [set_aside_delivery(row, language) for row in quarantined]
    events = f"{topic_prefix}.events"
    if inbox is not None:
        deliveries.append(first_delivery(inbox, events, language))
        deliveries += [later_delivery(row, events, language) for row in later]
    head = inbox or {}
    return EventExplanation(
        event_id=event_id,
        event_type=head.get("event_type") or next((r["event_type"] for r in quarantined if r["event_type"]), None),
        object_id=object_id,
        object_kind=head.get("object_kind"),
        version=head.get("version"),
        sequence=head.get("sequence"),
        key_id=head.get("key_id"),
        deliveries=deliveries,
        effects=[
            EventEffect(e["topic"], e["dedupe_key"], e["partition"], e["seq"], e["payload"], e["sent"]) for e in effects
        ],
        object_now=now,
    )


def _object_now(
    cursor: psycopg.Cursor[dict[str, Any]], queries: Queries, kind: str | None, object_id: str | None
) -> dict[str, Any] | None:
    """The row of the object; an event that was only ever set aside tells no kind, so that each table is asked."""
    for asked in (kind,) if kind is not None else _ROWS:
        query = _ROWS.get(asked)
        row = cursor.execute(queries[query], {"object_id": object_id}).fetchone() if query else None
        if row is not None:
            return row
    return None


def first_delivery(row: Mapping[str, Any], topic: str, language: Language) -> Delivery:
    """The delivery that the inbox recorded, from its row; `topic` is the full name of `events`."""
    source = f"{topic}[{row['source_partition']}]@{row['source_offset']}"
    reason = row["reason"] or row["parked_reason"]
    why, next_step = _words(reason, row["verdict"], language)
    return Delivery(row["received_at"], source, row["verdict"], reason, why, next_step)


def later_delivery(row: Mapping[str, Any], topic: str, language: Language) -> Delivery:
    """A delivery after the first one, from its row of `redeliveries`."""
    source = f"{topic}[{row['source_partition']}]@{row['source_offset']}"
    why, next_step = _words("seen_before", "redelivered", language)
    return Delivery(row["received_at"], source, row["verdict"], "seen_before", why, next_step)


def set_aside_delivery(row: Mapping[str, Any], language: Language) -> Delivery:
    """A delivery that was set aside, from its row of `quarantined_events`; with who closed it, where somebody did."""
    source = f"{row['source_topic']}[{row['source_partition']}]@{row['source_offset']}"
    why, next_step = _words(row["reason"], "quarantined", language)
    why = f"{why} {row['detail']}"
    if row["state"] != "open":
        actor = f" by {row['actor']}" if row["actor"] else ""
        why, next_step = f"{why} ({row['state']}{actor}: {row['note']})", ""
    return Delivery(row["at"], source, "quarantined", row["reason"], why, next_step)


def _words(reason: str | None, verdict: str, language: Language) -> tuple[str, str]:
    found = REASONS.get(cast("Reason", reason)) if reason else _SENTENCES.get(verdict)
    if found is None:
        return reason or verdict, ""
    nothing = "Nothing to do."
    return (found.th if language == "th" else found.en), ("" if found.next_step == nothing else found.next_step)
