"""The database as it was at one moment: every question of an audit is asked within one REPEATABLE READ transaction."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg import IsolationLevel

from schemas.topics import TopicNames
from sinks import migrations
from tallyhook.errors import DatabaseUnavailable
from tallyhook.postgres import Connection, Queries, connect
from tallyhook.settings import Settings

FETCH_ROWS = 1000
"""Rows that are in memory at a time of each walk over a table."""


@dataclass(frozen=True, slots=True)
class SinkPosition:
    """How far the sink had come in one partition: its next offset and the next numbers it would give."""

    next_offset: int
    next_outbox_seq: int
    next_arrival_seq: int


class Snapshot:
    """Questions to the snapshot; see `audit.sql` for each by its name.

    Args:
        connection: in a transaction that is REPEATABLE READ.
    """

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection = connection
        self._queries = Queries("tallyhook.operations.audit", "audit.sql", settings.installation.schema_name)
        self.at: datetime = self.rows("moment")[0][0]
        names = TopicNames(settings.installation.topic_prefix)
        self.applied = self._positions(names.state_changes)
        self.copied = self._positions(names.dead_letters)

    def rows(self, name: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """The rows of a question with a short answer."""
        return self._connection.execute(self._queries[name], parameters).fetchall()

    def look_up(self, name: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a question that asks for many keys at once.

        A plan that was made while the tables were small, or never analysed, would scan them once a key.
        """
        self._connection.execute("SET LOCAL enable_seqscan = off")
        found = self.rows(name, parameters)
        self._connection.execute("SET LOCAL enable_seqscan = on")
        return found

    def walk(self, name: str, parameters: Mapping[str, Any] | None = None) -> Iterator[tuple[Any, ...]]:
        """The rows of a question with a long answer, 1,000 in memory at a time."""
        with self._connection.cursor(name=f"audit_{name}") as cursor:
            cursor.itersize = FETCH_ROWS
            yield from cursor.execute(self._queries[name], parameters)

    def _positions(self, topic: str) -> dict[int, SinkPosition]:
        return {number: SinkPosition(*rest) for number, *rest in self.rows("positions", {"topic": topic})}


@contextmanager
def take(settings: Settings) -> Iterator[Snapshot]:
    """A snapshot of now. Raises DatabaseUnavailable, also within the block, and SchemaMismatch."""
    try:
        with connect(settings.database, "audit") as connection:
            migrations.check(connection, settings.installation)
            # Compiling pays for a few long statements and costs for the many short ones.
            connection.execute("SET jit = off")
            connection.isolation_level, connection.read_only = IsolationLevel.REPEATABLE_READ, True
            with connection.transaction():
                yield Snapshot(connection, settings)
    except psycopg.OperationalError as failure:
        raise DatabaseUnavailable(f"PostgreSQL, during the audit: {str(failure).strip()}") from failure
