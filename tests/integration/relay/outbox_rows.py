"""Rows for the outbox as the sink writes them: gap-free by partition, one NOTIFY a batch."""

import threading
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import sql

from schemas.effects import BALANCE_ENTRY
from tallyhook.postgres import Connection, connect
from tallyhook.settings import Settings

EFFECTS_USED = ("release_goods", "hold_goods", BALANCE_ENTRY)

_INSERT = """
INSERT INTO {outbox} (partition, seq, aggregatetype, aggregateid, type, topic, payload, dedupe_key, causation_id,
  version, received_at, created_at)
SELECT p, s, 'deposit', 'dep_' || p || '_' || s %% 7, 'deposit.settled',
  (ARRAY['release_goods', 'hold_goods', 'balance_entry'])[1 + (s %% 3)::int],
  jsonb_build_object('order_id', 'สั่ง-' || s, 'received', 12345678901234567 + s, 'filler', repeat('x', %(filler)s)),
  'deposit:' || p || ':' || s, 'evt_' || p || '_' || s, s, now() - interval '1 second',
  now() - make_interval(days => %(age_days)s)
FROM unnest(%(partitions)s::int[]) AS p, generate_series(%(first)s::bigint, %(last)s::bigint) AS s
"""


class OutboxWriter:
    """Writes rows and looks at the relay's tables, over one autocommit connection."""

    def __init__(self, settings: Settings) -> None:
        self.connection: Connection = connect(settings.database, "test")
        self._schema = settings.installation.schema_name
        self._channel = settings.installation.channel("outbox")
        self.next_seq = dict.fromkeys(range(settings.installation.partitions), 0)

    def table(self, name: str) -> sql.Identifier:
        """A table of the installation."""
        return sql.Identifier(self._schema, name)

    def add(
        self,
        rows: int,
        *,
        partitions: list[int] | None = None,
        filler: int = 0,
        age_days: int = 0,
        notify: bool = False,
    ) -> None:
        """Appends so many rows to each partition, in one transaction."""
        chosen = list(self.next_seq) if partitions is None else partitions
        first = {self.next_seq[partition] for partition in chosen}
        assert len(first) == 1, "partitions that are filled together must have the same length"
        start = first.pop()
        with self.connection.transaction():
            self.connection.execute(
                sql.SQL(_INSERT).format(outbox=self.table("pg_outbox")),
                {
                    "partitions": chosen,
                    "first": start,
                    "last": start + rows - 1,
                    "filler": filler,
                    "age_days": age_days,
                },
            )
            if notify:
                self.connection.execute("SELECT pg_notify(%s, '')", (self._channel,))
        for partition in chosen:
            self.next_seq[partition] = start + rows

    def delete(self, partition: int, seq: int) -> None:
        """Takes away one row, as a careless person or a failover would."""
        self.connection.execute(
            sql.SQL("DELETE FROM {} WHERE partition = %s AND seq = %s").format(self.table("pg_outbox")),
            (partition, seq),
        )

    def seqs(self, partition: int) -> list[int]:
        """The numbers of the rows that are there."""
        query = sql.SQL("SELECT seq FROM {} WHERE partition = %s ORDER BY seq").format(self.table("pg_outbox"))
        return [int(row[0]) for row in self.connection.execute(query, (partition,))]

    def cursors(self) -> dict[int, tuple[int, str | None]]:
        """Sent seq and owner by partition."""
        query = sql.SQL("SELECT partition, sent_seq, owner FROM {}").format(self.table("relay_cursors"))
        return {row[0]: (row[1], row[2]) for row in self.connection.execute(query)}

    def end_relay_sessions(self) -> int:
        """Ends every session of a relay of this installation's database; gives how many there were."""
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tallyhook-relay'"
        return len(self.connection.execute(query).fetchall())

    def expected(self) -> dict[int, list[int]]:
        """The seqs that a complete relay has sent, by partition."""
        return {partition: list(range(end)) for partition, end in self.next_seq.items()}


class Load:
    """A thread that appends a few rows to every partition again and again until it is left.

    Args:
        rows: so many a partition and batch.
        pause_seconds: between batches.
    """

    def __init__(self, writer: OutboxWriter, rows: int = 5, pause_seconds: float = 0.02) -> None:
        self.batches = 0
        self._writer, self._rows, self._pause_seconds = writer, rows, pause_seconds
        self._ended = threading.Event()
        self._failure: psycopg.Error | None = None
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(timeout=10)
        assert not self._thread.is_alive()
        if self._failure is not None and error is None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._ended.wait(self._pause_seconds):
                self._writer.add(self._rows, notify=True)
                self.batches += 1
        except psycopg.Error as failure:
            self._failure = failure


def text_of(value: Any) -> str:
    """Bytes of a record as text."""
    assert isinstance(value, bytes)
    return value.decode()
