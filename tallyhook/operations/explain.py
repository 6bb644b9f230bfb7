"""Why an event had, or had not, an effect: each delivery, its verdict, and the reason in words."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast

from psycopg.rows import dict_row

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
    """Everything the stores know of one event; `object_now` is its deposit's row, where there is one."""

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
        now = cursor.execute(queries["deposit"], {"object_id": object_id}).fetchone()
    deliveries = [_set_aside(row, language) for row in quarantined]
    events = f"{topic_prefix}.events"
    if inbox is not None:
        deliveries.append(_first(inbox, events, language))
        deliveries += [_again(row, events, language) for row in later]
    head = inbox or {}
    return EventExplanation(
        event_id=event_id,
        event_type=head.get("event_type"),
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


def _first(row: dict[str, Any], topic: str, language: Language) -> Delivery:
    source = f"{topic}[{row['source_partition']}]@{row['source_offset']}"
    reason = row["reason"] or row["parked_reason"]
    why, next_step = _words(reason, row["verdict"], language)
    return Delivery(row["received_at"], source, row["verdict"], reason, why, next_step)


def _again(row: dict[str, Any], topic: str, language: Language) -> Delivery:
    source = f"{topic}[{row['source_partition']}]@{row['source_offset']}"
    why, next_step = _words("seen_before", "redelivered", language)
    return Delivery(row["received_at"], source, row["verdict"], "seen_before", why, next_step)


def _set_aside(row: dict[str, Any], language: Language) -> Delivery:
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
