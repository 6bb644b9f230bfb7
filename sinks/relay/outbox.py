"""Reading `pg_outbox`: what waits, row by row in order, and the call that wakes the reader."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self
from uuid import UUID

from psycopg import sql

from sinks.relay.allotment import Range
from sinks.relay.database import answering, open_connection
from sinks.relay.record import OutboxRow
from tallyhook.errors import OutboxGap
from tallyhook.postgres import Queries
from tallyhook.settings import DatabaseSettings

WAKE_SLICE_SECONDS = 0.25
"""Longest wait in one call, so that a signal is noticed soon."""


class Outbox:
    """One connection to the outbox of some partitions. Every method raises DatabaseUnavailable.

    Args:
        channel: the notification channel on which the sink tells of new rows.
        partitions: the shard's.
    """

    def __init__(self, database: DatabaseSettings, queries: Queries, channel: str, partitions: Sequence[int]) -> None:
        self._queries, self._partitions = queries, list(partitions)
        self._connection = open_connection(database)
        try:
            with answering("listening for new outbox rows"):
                self._connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def heads(self) -> dict[int, int]:
        """The newest seq by partition; a partition without rows is absent."""
        with answering("looking for new outbox rows"):
            found = self._connection.execute(self._queries["heads"], {"partitions": self._partitions}).fetchall()
        return {int(partition): int(seq) for partition, seq in found}

    def rows(self, ranges: Sequence[Range]) -> list[OutboxRow]:
        """Every row of the ranges, by partition in order; raises OutboxGap when one is missing."""
        wanted = {
            "partitions": [one.partition for one in ranges],
            "after": [one.after for one in ranges],
            "upto": [one.upto for one in ranges],
        }
        with answering("reading outbox rows"):
            found = [OutboxRow._make(row) for row in self._connection.execute(self._queries["rows"], wanted)]
        _check_complete(ranges, found)
        return found

    def row_ids(self, seqs: Mapping[int, int]) -> dict[int, UUID]:
        """The id of the row with this seq, by partition; absent where there is no such row."""
        wanted = {"partitions": list(seqs), "seqs": list(seqs.values())}
        with answering("checking the outbox rows that were sent last"):
            return dict(self._connection.execute(self._queries["row_ids"], wanted).fetchall())

    def cursors(self) -> dict[int, int]:
        """The seq up to which each partition was known to be sent, -1 for nothing."""
        with answering("reading the relay's cursors"):
            return dict(self._connection.execute(self._queries["cursors"], {"partitions": self._partitions}).fetchall())

    def installed_topics(self) -> dict[str, tuple[str, int]]:
        """Id and partition count of each topic as `tallyhook topics apply` recorded them."""
        with answering("reading the installed topics"):
            found = self._connection.execute(self._queries["installed_topics"]).fetchall()
        return {str(topic): (str(topic_id), int(partitions)) for topic, topic_id, partitions in found}

    def wait(self, seconds: float) -> bool:
        """Waits for a notification, at most WAKE_SLICE_SECONDS; true when one came."""
        with answering("waiting for new outbox rows"):
            return any(True for _ in self._connection.notifies(timeout=min(seconds, WAKE_SLICE_SECONDS), stop_after=1))


def _check_complete(ranges: Sequence[Range], rows: Sequence[OutboxRow]) -> None:
    """The numbers of a partition have no gap, so every number of a range must have come, and in order."""
    found = iter(rows)
    for wanted in sorted(ranges, key=lambda one: (one.partition, one.after)):
        for expected in range(wanted.after + 1, wanted.upto + 1):
            row = next(found, None)
            if row is None or (row.partition, row.seq) != (wanted.partition, expected):
                raise OutboxGap(
                    f"outbox partition {wanted.partition}: row {expected} is missing, though later ones are there: it"
                    " was deleted before it was sent, and nothing after it is sent, because it may be money."
                    " Put it back from a backup under the same number, then restart the relay"
                )
