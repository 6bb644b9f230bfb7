"""The fence: who owns a partition, and up to where it was applied. The row in sink_offsets is the only truth.

A claim raises the partition's epoch; a batch holds the rows locked to its commit and demands the epoch and the position
that it last claimed or committed. A former owner that wakes up late therefore writes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg

from sinks.plan import Position
from tallyhook.errors import DatabaseUnavailable, FenceLost, PositionLost, TopicMismatch
from tallyhook.postgres import Connection, Queries

CLAIM_ATTEMPTS = 3
LOOK_BACK_SECONDS = 5.0
STATE_CHANGES = "state-changes"
"""What the command takes unless told otherwise."""


@dataclass(frozen=True, slots=True)
class TopicRange:
    """What a topic's partition holds now: offsets from `low` up to but not including `high`."""

    low: int
    high: int


class Fence:
    """The positions of one topic that this process owns.

    Args:
        connection: autocommit; its backend is recorded as the owner.
        schema: the installation's schema.
        topic: the topic whose records are applied.
        topic_id: the broker's id of it; a topic that was deleted and made anew has another.
    """

    def __init__(self, connection: Connection, schema: str, topic: str, topic_id: str) -> None:
        self.topic, self.topic_id, self._schema = topic, topic_id, schema
        self.positions: dict[int, Position] = {}
        self._connection, self._looked_back_at = connection, float("-inf")
        self._queries = Queries("sinks", "sql/fence.sql", schema)

    def claim(self, partition: int, held: TopicRange | None, wait_seconds: float) -> Position:
        """Makes this process the owner of a partition and gives the position to start from.

        Args:
            held: what the topic holds; None where there is no topic (records are handed in by the caller).
            wait_seconds: how long a former owner's transaction may last before its backend is ended.

        Raises:
            TopicMismatch: the stored position belongs to another topic of the same name.
            PositionLost: the stored position lies outside of what the topic holds; nothing is claimed.
            DatabaseUnavailable: the former owner could not be ended.
        """
        self.positions.pop(partition, None)
        self._connection.execute(self._queries["wait_at_most"], (f"{int(wait_seconds * 1000)}ms",))
        try:
            for _ in range(CLAIM_ATTEMPTS):
                try:
                    with self._connection.transaction():
                        position = self._take(partition, held)
                except psycopg.errors.LockNotAvailable:
                    self._connection.execute(
                        self._queries["end_frozen_owner"], {"topic": self.topic, "partition": partition}
                    )
                else:
                    self.positions[partition] = position
                    return position
        finally:
            if not self._connection.broken:
                self._connection.execute(self._queries["wait_at_most"], ("0",))
        raise DatabaseUnavailable(
            f"partition {partition} of {self.topic} is held by another session that could not be ended;"
            f" look for locks on {self._schema}.sink_offsets in pg_locks"
        )

    def release(self, partitions: Sequence[int]) -> None:
        """Forgets partitions that were taken away; their new owner claims them."""
        for partition in partitions:
            self.positions.pop(partition, None)

    def claimed_since(self, connection: Connection) -> dict[int, tuple[int, int]]:
        """Partitions that another worker claimed meanwhile, each with the epoch held here and the one stored now.

        Args:
            connection: another one than the fence's own, which may be gone.

        Raises:
            psycopg.Error: the rows cannot be read.
        """
        found = connection.execute(self._queries["find_epochs"], (self.topic, list(self.positions)))
        held = {partition: position.epoch for partition, position in self.positions.items()}
        return {partition: (held[partition], epoch) for partition, epoch in sorted(found) if epoch > held[partition]}

    def look_back(self, now_seconds: float) -> None:
        """Now and then: raises FenceLost where the database stands behind what this process last claimed or committed.

        That is a database that lost commits: what it no longer has must be applied again, also while nothing comes. A
        partition that another worker claimed is not told here; its records are refused with the next batch.

        Args:
            now_seconds: of a clock that never goes back; most calls come too soon and do nothing.
        """
        if now_seconds - self._looked_back_at < LOOK_BACK_SECONDS:
            return
        self._looked_back_at = now_seconds
        held = dict(self.positions)
        rows = self._connection.execute(self._queries["stored"], (self.topic, list(held))).fetchall()
        stored = {number: (epoch, next_offset) for number, epoch, next_offset in rows}
        for number, position in sorted(held.items()):
            found = stored.get(number, (0, 0))
            if found < (position.epoch, position.next_offset):
                raise FenceLost(
                    f"the database lost commits: partition {number} of {self.topic} was applied up to"
                    f" {position.next_offset} under claim {position.epoch}, and it has {found[1]} under claim"
                    f" {found[0]}; what is missing is applied again"
                )

    def demand(self, locked: Mapping[int, Position], partitions: Sequence[int]) -> None:
        """Raises FenceLost unless the locked rows are those that this process last claimed or committed."""
        for partition in partitions:
            mine, found = self.positions.get(partition), locked.get(partition)
            if mine is None or found is None or (mine.epoch, mine.next_offset) != (found.epoch, found.next_offset):
                raise FenceLost(
                    f"partition {partition} of {self.topic} belongs to another worker: held {mine}, stored {found};"
                    " nothing of the batch was written"
                )

    def _take(self, partition: int, held: TopicRange | None) -> Position:
        row = self._connection.execute(
            self._queries["claim"], {"topic": self.topic, "topic_id": self.topic_id, "partition": partition}
        ).fetchone()
        if row is None:
            raise FenceLost(f"partition {partition} of {self.topic} could not be claimed")
        topic_id, epoch, next_offset, next_outbox_seq, next_arrival_seq = row
        if topic_id != self.topic_id:
            raise TopicMismatch(
                f"topic {self.topic} was deleted and made anew (id {topic_id}, now {self.topic_id}): stored positions"
                " name records that are gone. Restore it, or install under a new prefix and schema with"
                " `tallyhook topics apply`"
            )
        if held is not None and not held.low <= next_offset <= held.high:
            raise PositionLost(self._lost(partition, next_offset, held))
        return Position(epoch, next_offset, next_outbox_seq, next_arrival_seq)

    def _lost(self, partition: int, next_offset: int, held: TopicRange) -> str:
        place = f"partition {partition} of {self.topic}"
        if next_offset > held.high:
            return (
                f"{place} was applied up to {next_offset} and ends at {held.high}: the broker lost"
                f" {next_offset - held.high} records or more. Restore the broker's data, or go over all that is there"
                f" once more, which counts once: {self._accept(partition, held.low)}"
            )
        lost = held.low - next_offset
        return (
            f"{place} was applied up to {next_offset} and begins at {held.low}: records {next_offset} to {held.low - 1}"
            f" ({lost}) are gone. Restore them, or give them up and fetch what is missing from the gateway:"
            f" {self._accept(partition, held.low)}, then `tallyhook gaps` and `tallyhook backfill --gaps`"
        )

    def _accept(self, partition: int, offset: int) -> str:
        """What an operator does to accept a loss; the worker looks again by itself."""
        name = self.topic.rpartition(".")[2]
        option = "" if name == STATE_CHANGES else f" --topic {name}"
        return f"`tallyhook sink accept-loss --partition {partition} --to-offset {offset}{option} --reason ...`"
