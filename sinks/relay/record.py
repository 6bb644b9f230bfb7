"""An outbox row as a Kafka record: the effect's payload, its metadata as CloudEvents headers in binary mode."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from schemas.effects import BALANCE_ENTRY
from schemas.headers import CONTENT_TYPE, SPEC_VERSION, Header
from schemas.topics import TopicNames


class OutboxRow(NamedTuple):
    """One row of `pg_outbox`, in the order of the query's columns.

    Args:
        topic: name of the effect, or `balance_entry`.
        aggregateid: the object's id, which is the record's key.
        payload: JSON text.
        received_at: when the door had the event that caused it.
    """

    partition: int
    seq: int
    id: UUID
    topic: str
    aggregateid: str
    payload: str
    dedupe_key: str
    causation_id: str
    version: int
    received_at: datetime
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Record:
    """What is handed to the producer."""

    topic: str
    partition: int
    key: str
    value: str | bytes
    headers: list[Header]


def topic_of(names: TopicNames, effect: str) -> str:
    """The topic that takes rows of this effect; whether it exists is another question."""
    return names.balance_entries if effect == BALANCE_ENTRY else names.effect(effect)


def record_of(row: OutboxRow, topic: str, source: str) -> Record:
    """The record of one row.

    Args:
        topic: the effect's topic.
        source: ce_source, a URI reference of the installation.
    """
    return Record(
        topic=topic,
        partition=row.partition,
        key=row.aggregateid,
        # Only blanks change: numbers keep their digits, because nothing is parsed into a float.
        value=msgspec.json.format(row.payload, indent=-1),
        headers=[
            SPEC_VERSION,
            ("ce_id", row.dedupe_key),
            ("ce_type", row.topic),
            ("ce_source", source),
            ("ce_subject", row.aggregateid),
            ("ce_time", row.created_at.astimezone(UTC).isoformat().replace("+00:00", "Z")),
            ("ce_version", str(row.version)),
            ("ce_causationid", row.causation_id),
            ("ce_outboxpartition", str(row.partition)),
            ("ce_outboxseq", str(row.seq)),
            ("ce_dataschema", f"/schemas/effects/{row.topic}.json"),
            CONTENT_TYPE,
        ],
    )
