"""The work on `dead-letters`: every record is copied into quarantined_events, once, under a fence of its own."""

from collections.abc import Sequence
from typing import get_args

from confluent_kafka import Message

from schemas.headers import HeaderError, texts
from schemas.reasons import Reason
from sinks import quarantine
from sinks.errors import CountDiffers
from sinks.fence import Fence, TopicRange
from sinks.measures import Measures
from sinks.plan import Position, copies
from sinks.quarantine import QuarantinedRow, safe_text
from sinks.records import Source, headers_of
from sinks.transaction import advance_parameters
from tallyhook.failpoints import reach
from tallyhook.postgres import Connection, Queries
from tallyhook.settings import Settings

STAGES = ("ingress", "streams", "sinks")
UNKNOWN_STAGE = "streams"
REASONS = frozenset(get_args(Reason))


class DeadLetters:
    """Copies dead letters through one connection; made anew with each connection.

    Args:
        topic: the dead letters' topic, and `topic_id` its id at the broker.
    """

    def __init__(
        self, connection: Connection, topic_id: str, settings: Settings, topic: str, measures: Measures
    ) -> None:
        schema = settings.installation.schema_name
        self.fence = Fence(connection, schema, topic, topic_id)
        self._connection, self._wait_seconds = connection, settings.sink.claim_wait_seconds
        self._measures = measures
        self._batch = Queries("sinks", "sql/batch.sql", schema)
        self._quarantine = Queries("sinks", "sql/quarantine.sql", schema)

    def claim(self, partitions: Sequence[int], held: dict[int, TopicRange]) -> None:
        """Makes this process the owner of the partitions."""
        for partition in partitions:
            self.fence.claim(partition, held[partition], self._wait_seconds)

    def apply(self, messages: Sequence[Message]) -> None:
        """Writes the rows and the positions in one transaction; raises FenceLost when another worker owns one."""
        partitions = sorted({message.partition() or 0 for message in messages})
        topic = self.fence.topic
        with self._connection.transaction():
            found = self._connection.execute(
                self._batch["lock_positions"], {"topic": topic, "partitions": partitions}
            ).fetchall()
            locked = {number: Position(*rest) for number, *rest in found}
            self.fence.demand(locked, partitions)
            after, rows = copies(locked), []
            for message in messages:
                position, offset = after[message.partition() or 0], message.offset() or 0
                if offset >= position.next_offset:
                    position.next_offset = offset + 1
                    rows.append(row_of(message, topic))
            quarantine.add(self._connection, self._quarantine, rows)
            advanced = self._connection.execute(self._batch["advance"], advance_parameters(topic, after)).rowcount
            if advanced != len(after):
                raise CountDiffers("advance", len(after), advanced)
            reach("sink.letters_written")
        reach("sink.letters_committed")
        self.fence.positions.update(after)
        self._measures.dead_letters(row.reason for row in rows)

    def between(self) -> None:
        """Nothing is to be done between batches."""


def row_of(message: Message, topic: str) -> QuarantinedRow:
    """The row of one dead letter; headers that cannot be read leave their columns empty."""
    headers = headers_of(message)
    try:
        found = texts(headers)
    except HeaderError:
        found = {}
    key = message.key()
    stage, reason = found.get("ce_stage", ""), found.get("ce_reason", "")
    return QuarantinedRow(
        stage=stage if stage in STAGES else UNKNOWN_STAGE,
        reason=reason if reason in REASONS else "record_headers",
        detail=found.get("ce_detail") or "no detail was given",
        event_id=found.get("ce_id"),
        object_id=found.get("ce_subject") or (None if key is None else safe_text(key)),
        raw=message.value() or b"",
        headers=headers,
        source=Source(topic, message.partition() or 0, message.offset() or 0),
    )
