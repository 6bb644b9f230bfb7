"""Ids that one side has named, on disk: a list of any length takes the same memory."""

import sqlite3
from collections.abc import Iterable, Sequence
from types import TracebackType


class SeenIds:
    """A set of ids in a file of its own, which is gone when the context ends."""

    def __init__(self) -> None:
        # An empty name is SQLite's for a file that it removes itself.
        self._file = sqlite3.connect("")
        self._file.execute("CREATE TABLE seen (id TEXT PRIMARY KEY) WITHOUT ROWID")

    def __enter__(self) -> "SeenIds":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, ids: Iterable[str]) -> int:
        """Takes ids in; gives how many of them are new."""
        before = self._file.total_changes
        self._file.executemany("INSERT OR IGNORE INTO seen VALUES (?)", ((one,) for one in ids))
        self._file.commit()
        return self._file.total_changes - before

    def without(self, ids: Sequence[str]) -> list[str]:
        """Those that are not in the set, in their order."""
        return [one for one in ids if self._file.execute("SELECT 1 FROM seen WHERE id = ?", (one,)).fetchone() is None]
