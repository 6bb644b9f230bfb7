"""What PostgreSQL tells, over one connection that can change nothing."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from sinks import migrations
from tallyhook.errors import SchemaMismatch
from tallyhook.postgres import Connection, Queries
from tallyhook.settings import Settings

STATEMENT_SECONDS = 10

_CREATED = re.compile(r'CREATE TABLE "[^"]+"\.([a-z_0-9]+)')


@dataclass(frozen=True, slots=True)
class Server:
    """What the server guarantees, as it holds for the role that asks.

    Args:
        version: server_version_num, such as 180004.
        standbys: synchronous_standby_names.
        recovering: it is a standby that follows another server.
        read_only: transactions of this role only read unless they say otherwise.
        free_connections: how many more clients it takes, those reserved for superusers not counted.
    """

    version: int
    encoding: str
    fsync: bool
    full_page_writes: bool
    synchronous_commit: str
    standbys: str
    recovering: bool
    read_only: bool
    role: str
    free_connections: int


@dataclass(frozen=True, slots=True)
class SinkPosition:
    """Up to where one partition was applied: the next record is `next_offset` of the topic with this id."""

    topic: str
    topic_id: str
    partition: int
    next_offset: int


class Database:
    """Asks the database. Every method raises psycopg.Error.

    Args:
        connection: autocommit; it only reads from here on.
    """

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection, self._settings = connection, settings
        self._schema = settings.installation.schema_name
        self._queries = Queries("tallyhook.operations.doctor", "doctor.sql", self._schema)
        self._relay_queries = Queries("sinks", "sql/relay.sql", self._schema)
        connection.read_only = True
        self.server = Server(*(self._one("server") + self._one("connections")))

    def now(self) -> datetime:
        """The server's clock."""
        moment: datetime = self._one("now")[0]
        return moment

    def wrong_revision(self) -> str | None:
        """Why this program cannot work with the schema; None when it can."""
        try:
            migrations.check(self._connection, self._settings.installation)
        except SchemaMismatch as failure:
            return str(failure)
        return None

    def revision(self) -> str:
        """Where the schema stands; empty for one that was never made."""
        return migrations.standing(self._connection, self._settings.installation)[0] or ""

    def installed_topics(self) -> dict[str, tuple[str, int]]:
        """Id and partition count by topic, as `topics apply` recorded them."""
        return {topic: (topic_id, partitions) for topic, topic_id, partitions in self._all("installed_topics")}

    def positions(self) -> list[SinkPosition]:
        """Every stored position of the sink."""
        return [SinkPosition(*row) for row in self._all("positions")]

    def shards(self) -> int | None:
        """How many relays share the partitions; None before the first one started."""
        rows = self._all("shards")
        return int(rows[0][0]) if rows else None

    def cursors(self) -> dict[int, int]:
        """The seq that the database remembers as sent, by partition."""
        return {int(partition): int(seq) for partition, seq in self._all("cursors")}

    def row_ids(self, seqs: dict[int, int]) -> dict[int, Any]:
        """The ids of outbox rows by partition, where they are there."""
        wanted = {"partitions": list(seqs), "seqs": list(seqs.values())}
        return dict(self._rows(self._relay_queries["row_ids"], wanted))

    def unsent(self) -> dict[int, int]:
        """How many outbox rows wait by partition where no relay has a lease."""
        return {int(partition): int(rows) for partition, rows in self._all("unsent")}

    def sequences(self) -> tuple[bool, bool]:
        """Whether numbers of the gateway's sequence were ever kept, and whether a sink keeps them now."""
        rows = self._all("sequences")
        return (bool(rows[0][0]), bool(rows[0][1])) if rows else (False, False)

    def missing_tables(self) -> list[str]:
        """Tables of this program's revision that do not exist."""
        rendered = migrations.render(self._settings.installation, self.server.version)
        wanted = sorted(set(_CREATED.findall(rendered)))
        there = {row[0] for row in self._all("tables", {"schema": self._schema, "tables": wanted})}
        return [table for table in wanted if table not in there]

    def lacking(self, privileges: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
        """Of the privileges by table, those that this role lacks; the tables must exist."""
        pairs = [(table, privilege) for table, needed in privileges.items() for privilege in needed]
        names = [sql.Identifier(self._schema, table).as_string() for table, _ in pairs]
        wanted = {"names": names, "privileges": [privilege for _, privilege in pairs]}
        tables = dict(zip(names, (table for table, _ in pairs), strict=True))
        return [(tables[name], privilege) for name, privilege in self._all("privileges", wanted)]

    def _one(self, name: str) -> tuple[Any, ...]:
        rows = self._all(name)
        if not rows:
            raise psycopg.DataError(f"{name}: no row")
        return rows[0]

    def _all(self, name: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        return self._rows(self._queries[name], parameters)

    def _rows(self, statement: sql.Composed, parameters: Any) -> list[tuple[Any, ...]]:
        # Settings of the session would stay behind for other clients where a pooler lends the connection.
        with self._connection.transaction():
            self._connection.execute(self._queries["bound"], (f"{STATEMENT_SECONDS}s",))
            return self._connection.execute(statement, parameters).fetchall()
