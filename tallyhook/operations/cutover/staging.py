"""The rows of a source, read, checked and kept aside in the session before any of them is written."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from tallyhook.errors import TallyhookError
from tallyhook.operations.cutover.columns import BY_NAME, KINDS, Kind
from tallyhook.operations.cutover.old_database import OldDatabase
from tallyhook.operations.cutover.reading import Text, Unreadable, read_row
from tallyhook.postgres import Connection, Queries

FAULTS_MAX = 100
"""So many are told; nothing is written when there is one."""
TELL_EVERY_ROWS = 1000
CHECKS = (
    *("find_repeated", "find_orphans", "find_unowned", "find_shared_references", "find_unpriced"),
    "find_shared_transactions",
)

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one row of the source.

    Args:
        kind: its plural.
        place: its line, or its key in a database.
        object_id: its key; None where it cannot be read.
    """

    kind: str
    place: str
    object_id: str | None
    what: str


class Faulty(TallyhookError):
    """The source has rows that cannot be taken over: nothing of it was written."""

    def __init__(self, faults: list[Fault]) -> None:
        more = " or more" if len(faults) == FAULTS_MAX else ""
        super().__init__(f"{len(faults)}{more} faults; nothing was written. Correct them, then repeat the import")
        self.faults = faults


Tell = Callable[[str, int, int | None], None]
"""For the progress bar: a step, how many rows more, and how many there are where that is known."""


class Staging:
    """The rows kept aside in one session.

    Args:
        connection: autocommit, used by nobody else.
        queries: the statements of `import.sql`.
    """

    def __init__(self, connection: Connection, queries: Queries) -> None:
        self._connection, self._queries = connection, queries
        self._faults: list[Fault] = []
        connection.execute(queries["create_staged"])

    def add(self, kind: Kind, rows: Iterable[tuple[str, Text | str]], tell: Tell, total: int | None) -> None:
        """Reads and checks rows by themselves; what is wrong is kept for `check`."""
        unread = 0
        with self._connection.cursor().copy(self._queries["copy_staged"]) as copy:
            for place, given in rows:
                unread += 1
                if unread == TELL_EVERY_ROWS:
                    tell(f"reading {kind.plural}", unread, total)
                    unread = 0
                if isinstance(given, str):
                    self._note(Fault(kind.plural, place, None, given))
                    continue
                try:
                    row = read_row(kind, given)
                except Unreadable as failure:
                    for fault in failure.faults:
                        self._note(Fault(kind.plural, place, given.get(kind.key), fault))
                    continue
                copy.write_row((kind.name, row[kind.key], row[kind.owner], place, _encode(row).decode()))
        tell(f"reading {kind.plural}", unread, total)

    def add_all(self, old: OldDatabase, tell: Tell) -> list[str]:
        """Reads every kind that a database has, all of one moment; gives the plurals of those that it does not have."""
        with old.snapshot():
            for kind in KINDS:
                if kind.name in old.tables:
                    self.add(kind, old.rows(kind), tell, old.count(kind))
        return [kind.plural for kind in KINDS if kind.name not in old.tables]

    def check(self) -> None:
        """Checks the rows against each other and against what is here; raises Faulty."""
        for name in ("index_staged", "index_staged_object", "analyze_staged"):
            self._connection.execute(self._queries[name])
        for name in CHECKS:
            found = self._connection.execute(self._queries[name], {"limit": FAULTS_MAX})
            for kind, place, object_id, what in found.fetchall():
                self._note(Fault(BY_NAME[kind].plural, place, object_id, what))
        if self._faults:
            raise Faulty(self._faults)

    def count(self) -> dict[str, int]:
        """How many rows of each kind there are."""
        return dict(self._connection.execute(self._queries["count_staged"]).fetchall())

    def _note(self, fault: Fault) -> None:
        if len(self._faults) < FAULTS_MAX:
            self._faults.append(fault)
