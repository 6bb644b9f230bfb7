"""The database as it was at one moment: every question of an audit is asked within one REPEATABLE READ transaction."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg import IsolationLevel, sql
from psycopg.rows import dict_row

from schemas.topics import TopicNames
from sinks import migrations
from tallyhook.errors import DatabaseUnavailable
from tallyhook.postgres import Connection, Queries, connect
from tallyhook.settings import Settings

FETCH_ROWS = 1000
"""Rows that are in memory at a time of each walk over a table."""

_EVERY = sql.SQL("IS NOT NULL")
_TOUCHED = sql.SQL("IN (SELECT object_id FROM pg_temp.audit_touched)")
_TOUCHED_USERS = """
  IN (SELECT d.our_user_id FROM {schema}.pg_deposits d JOIN pg_temp.audit_touched t ON t.object_id = d.pg_deposit_id)
"""


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
        since: the walks have only objects of which something was received or changed since then; None for all.

    Attributes:
        walked: how many rows each walk has given so far.
    """

    def __init__(self, connection: Connection, settings: Settings, since: datetime | None = None) -> None:
        self._connection, self.since = connection, since
        self.walked: Counter[str] = Counter()
        schema = sql.Identifier(settings.installation.schema_name)
        self._queries = Queries(
            "tallyhook.operations.audit",
            "audit.sql",
            settings.installation.schema_name,
            among=_EVERY if since is None else _TOUCHED,
            among_users=_EVERY if since is None else sql.SQL(_TOUCHED_USERS).format(schema=schema),
        )
        self.at: datetime = self.rows("moment")[0][0]
        if since is not None:
            self._keep_touched(since)
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
            for row in cursor.execute(self._queries[name], parameters):
                self.walked[name] += 1
                yield row

    def counts(self, name: str) -> dict[str, int]:
        """The only row of a question that counts, by the names of its columns."""
        with self._connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(self._queries[name]).fetchone() or {}

    def _keep_touched(self, since: datetime) -> None:
        self._connection.execute(self._queries["create_touched"])
        self._connection.execute(self._queries["fill_touched"], {"since": since})
        self._connection.execute("ANALYZE pg_temp.audit_touched")

    def _positions(self, topic: str) -> dict[int, SinkPosition]:
        return {number: SinkPosition(*rest) for number, *rest in self.rows("positions", {"topic": topic})}


@contextmanager
def take(settings: Settings, since: datetime | None = None) -> Iterator[Snapshot]:
    """A snapshot of now, of all objects or of those that were touched since then.

    Raises DatabaseUnavailable, also within the block, and SchemaMismatch.
    """
    try:
        with connect(settings.database, "audit") as connection:
            migrations.check(connection, settings.installation)
            # Compiling pays for a few long statements and costs for the many short ones.
            connection.execute("SET jit = off")
            connection.isolation_level = IsolationLevel.REPEATABLE_READ
            with connection.transaction():
                made = Snapshot(connection, settings, since)
                # Where a part is asked for it has made a table of its own by now; from here on nothing can be changed.
                connection.execute("SET TRANSACTION READ ONLY")
                yield made
    except psycopg.OperationalError as failure:
        raise DatabaseUnavailable(f"PostgreSQL, during the audit: {str(failure).strip()}") from failure
