"""The comparison with an old handler that runs beside: row by row, in order of the keys, in bounded memory."""

import threading
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import set_json_loads

from sinks.domain.instants import instant
from tallyhook.clock import Clock
from tallyhook.errors import TallyhookError
from tallyhook.operations.cutover.columns import BALANCES, CORRELATIONS, KINDS, Kind
from tallyhook.operations.cutover.comparing import differing, load_json
from tallyhook.operations.cutover.difference import EVENTS_SHOWN, Compared, Difference, Finding, Summary, What
from tallyhook.operations.cutover.old_database import ROWS_A_FETCH, OldDatabase
from tallyhook.operations.cutover.reading import Text, Unreadable, read_row
from tallyhook.operations.reconcile.difference import LedThere
from tallyhook.postgres import Connection, Queries

LOOKS = 3
"""How often a row that differs is looked at before it counts as moving: two equal looks make a difference."""
TELL_EVERY_ROWS = 1000

Here = dict[str, Any]
Unlike = list[tuple[What, str | None, Any, Any]]
"""What is not the same, the column, the value here and the value there."""
Suspects = dict[tuple[str, str], Unlike]
"""By kind and key."""


class Interrupted(TallyhookError):
    """The comparison was stopped before its end."""


class Shadow:
    """Compares the installation's tables with those of an old handler.

    Args:
        connection: autocommit, used by nobody else.
        settle_seconds: a difference counts if it is the same after this time.
        ignore_newer: rows that changed within this time are passed over; zero for none.
        most: the comparison stops after so many rows that differ.
        stopping: once set, it ends with Interrupted.
    """

    def __init__(
        self,
        connection: Connection,
        schema: str,
        old: OldDatabase,
        *,
        settle_seconds: float,
        ignore_newer: timedelta,
        most: int,
        clock: Clock,
        stopping: threading.Event,
    ) -> None:
        self._connection, self._old = connection, old
        self._queries = Queries("tallyhook.operations.cutover", "compare.sql", schema)
        self._settle_seconds, self._ignore_newer, self._most = settle_seconds, ignore_newer, most
        self._clock, self._stopping = clock, stopping
        self._fresh, self._moving = 0, 0
        set_json_loads(load_json, connection)

    def run(self) -> Iterator[Finding]:
        """Differences that last, and at the end a summary.

        Raises:
            Interrupted.
            psycopg.Error: a database ended a statement.
        """
        self._fresh = self._moving = 0
        compared = [kind for kind in KINDS if kind is not CORRELATIONS and kind.name in self._old.tables]
        without = [kind.plural for kind in KINDS if kind is not CORRELATIONS and kind.name not in self._old.tables]
        suspects: Suspects = {}
        with self._old.snapshot(), self._connection.transaction():
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            for kind in compared:
                yield from self._scan(kind, suspects)
        whole = len(suspects) < self._most
        yield from self._settle(suspects)
        yield Summary(self._fresh, self._moving, whole, without)

    def _scan(self, kind: Kind, suspects: Suspects) -> Iterator[Finding]:
        done, total = 0, self._old.count(kind)
        for key, mine, theirs in self._merged(kind):
            if len(suspects) >= self._most:
                break
            unlike = self._unlike(kind, mine, theirs)
            if unlike:
                suspects[(kind.name, key)] = unlike
            done += 1
            if done % TELL_EVERY_ROWS == 0:
                if self._stopping.is_set():
                    raise Interrupted("stopped; nothing was changed")
                yield Compared(kind.plural, done, max(total, done))
        yield Compared(kind.plural, done, done)

    def _merged(self, kind: Kind) -> Iterator[tuple[str, Here | None, Text | None]]:
        """Both sides' rows by key; both come in order of the key's bytes, which is that of Python's text."""
        with self._connection.cursor(name=f"here_{kind.plural}") as cursor:
            cursor.itersize = ROWS_A_FETCH
            cursor.execute(self._queries[f"rows_{kind.name}"])
            here, there = iter(cursor), self._old.rows(kind)
            mine, theirs = next(here, None), next(there, None)
            while mine is not None or theirs is not None:
                if mine is not None and (theirs is None or mine[0] < theirs[0]):
                    yield mine[0], mine[1], None
                    mine = next(here, None)
                elif theirs is not None and (mine is None or theirs[0] < mine[0]):
                    yield theirs[0], None, theirs[1]
                    theirs = next(there, None)
                elif mine is not None and theirs is not None:
                    yield mine[0], mine[1], theirs[1]
                    mine, theirs = next(here, None), next(there, None)

    def _unlike(self, kind: Kind, mine: Here | None, theirs: Text | None) -> Unlike:
        if self._is_fresh(kind, mine, theirs):
            self._fresh += 1
            return []
        if theirs is None:
            return [] if _is_nothing(kind, mine) else [("missing there", None, None, None)]
        try:
            row = read_row(kind, theirs)
        except Unreadable as failure:
            return [("unreadable", None, None, "; ".join(failure.faults))]
        if mine is None:
            return [] if _is_nothing(kind, row) else [("missing here", None, None, None)]
        what: What = "differs"
        if "pg_version" in row and row["pg_version"] != mine["pg_version"]:
            what = "behind" if mine["pg_version"] < row["pg_version"] else "ahead"
        return [(what, *values) for values in differing(kind, mine, row)]

    def _is_fresh(self, kind: Kind, mine: Here | None, theirs: Text | None) -> bool:
        if kind.fresh is None or not self._ignore_newer:
            return False
        since = self._clock.now() - self._ignore_newer
        moments = (side.get(kind.fresh) for side in (mine, theirs) if side is not None)
        return any(moment is not None and _after(moment, since) for moment in moments)

    def _settle(self, suspects: Suspects) -> Iterator[Finding]:
        """Looks again at what differs until two looks in a row agree."""
        for _ in range(1, LOOKS):
            if not suspects:
                return
            if self._stopping.wait(self._settle_seconds):
                raise Interrupted("stopped; nothing was changed")
            still: Suspects = {}
            for kind in KINDS:
                keys = sorted(key for name, key in suspects if name == kind.name)
                for key, mine, theirs in self._some(kind, keys):
                    before, now = suspects[(kind.name, key)], self._unlike(kind, mine, theirs)
                    if before == now:
                        yield from self._told(kind, key, mine, theirs, now)
                    elif now:
                        still[(kind.name, key)] = now
            suspects = still
        self._moving += len(suspects)

    def _some(self, kind: Kind, keys: Sequence[str]) -> Iterator[tuple[str, Here | None, Text | None]]:
        for start in range(0, len(keys), ROWS_A_FETCH):
            wanted = keys[start : start + ROWS_A_FETCH]
            theirs = dict(self._old.some(kind, wanted))
            mine: dict[str, Here] = dict(
                self._connection.execute(self._queries[f"some_{kind.name}"], (wanted,)).fetchall()
            )
            for key in wanted:
                yield key, mine.get(key), theirs.get(key)

    def _told(
        self, kind: Kind, key: str, mine: Here | None, theirs: Text | None, unlike: Unlike
    ) -> Iterator[Difference]:
        owner = key if kind.owner == kind.key else str((mine or theirs or {}).get(kind.owner))
        wanted = {"id": owner, "limit": EVENTS_SHOWN}
        found = self._connection.execute(self._queries["led_user" if kind is BALANCES else "led_object"], wanted)
        events = tuple(LedThere(*row) for row in reversed(found.fetchall()))
        for what, member, here, there in unlike:
            yield Difference(kind.plural, key, what, member, here, there, events)


def _is_nothing(kind: Kind, row: Here | None) -> bool:
    """A balance of 0 says what no balance says."""
    return kind is BALANCES and row is not None and row["balance_minor"] == 0


def _after(moment: str, since: datetime) -> bool:
    read = instant(moment)
    return read is not None and read > since
