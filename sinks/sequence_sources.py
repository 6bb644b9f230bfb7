"""Where seen numbers are read in the database: the inbox, and events that were set aside.

Each source gives a page and keeps its cursor in the transaction that takes the page in; `taken` is called once that
transaction is committed, `failed` when it is not.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sinks.sequences import Seen
from tallyhook.postgres import Connection, Queries

INBOX_ROWS_MAX = 50_000
SET_ASIDE_ROWS_MAX = 5_000
NUMBER_MAX = (1 << 63) - 1
START = (0, 0)


@dataclass(frozen=True, slots=True)
class Page:
    """What a source brought.

    Args:
        more: more waits behind it.
    """

    seen: Sequence[Seen] = field(default_factory=list)
    more: bool = False


class Source(Protocol):
    """A source of numbers."""

    def read(self) -> Page:
        """The next page, in the keeper's transaction; its cursor moves in the same one."""

    def taken(self) -> None:
        """The transaction is committed."""

    def failed(self) -> None:
        """The transaction came to nothing, or another process kept the numbers meanwhile."""


class Cursors:
    """The table `sequence_sources`."""

    def __init__(self, connection: Connection, queries: Queries) -> None:
        self._connection, self._queries = connection, queries

    def load(self, source: str) -> dict[int, int]:
        """Next number by partition."""
        return dict(self._connection.execute(self._queries["read_positions"], (source,)).fetchall())

    def save(self, source: str, positions: dict[int, int]) -> None:
        """Moves the cursors."""
        values: dict[str, Any] = {"source": source, "partitions": list(positions), "numbers": list(positions.values())}
        self._connection.execute(self._queries["save_positions"], values)


class Inbox:
    """Numbers of the inbox, partition by partition in the order of their arrival; the cursor is the table's alone."""

    def __init__(self, connection: Connection, queries: Queries, partitions: int) -> None:
        self._connection, self._queries = connection, queries
        self._cursors = Cursors(connection, queries)
        self._rows_max = max(1, INBOX_ROWS_MAX // partitions)
        connection.execute(queries["begin_inbox"], (partitions,))

    def read(self) -> Page:
        """At most 50,000 numbers, the same share of each partition."""
        rows = self._connection.execute(self._queries["read_inbox"], (self._rows_max,)).fetchall()
        seen, positions, counts = [], dict[int, int](), defaultdict[int, int](int)
        for partition, merchant, next_number, count, numbers, since, until in rows:
            seen.append(Seen(merchant, numbers, since, until))
            positions[partition] = max(next_number, positions.get(partition, 0))
            counts[partition] += count
        if positions:
            self._cursors.save("inbox", positions)
        return Page(seen, more=any(count >= self._rows_max for count in counts.values()))

    def taken(self) -> None:
        """Nothing is kept here."""

    def failed(self) -> None:
        """Nothing is kept here."""


class SetAside:
    """Numbers of quarantined events, dead letters among them.

    A pass goes over every row since the stored horizon, page by page, and stores the next horizon with its last page. A
    transaction id marks "since", because the order of ids is not that of the commits.
    """

    def __init__(self, connection: Connection, queries: Queries) -> None:
        self._connection, self._queries = connection, queries
        self._cursors = Cursors(connection, queries)
        self._horizons: tuple[int, int] | None = None
        self._after = self._next_after = START

    def read(self) -> Page:
        """At most 5,000 numbers."""
        if self._horizons is None:
            row = self._connection.execute(self._queries["read_horizon"]).fetchone()
            self._horizons = (0, 0) if row is None else (row[0], row[1])
        horizon, next_horizon = self._horizons
        after_xid, after_id = self._after
        rows = self._connection.execute(
            self._queries["read_set_aside"],
            {"horizon": horizon, "after_xid": after_xid, "after_id": after_id, "limit": SET_ASIDE_ROWS_MAX},
        ).fetchall()
        more = len(rows) >= SET_ASIDE_ROWS_MAX
        if more:
            self._next_after = (rows[-1][0], rows[-1][1])
        elif next_horizon != horizon:
            self._cursors.save("set-aside", {0: next_horizon})
        numbers = [(merchant, as_number(text), at) for _, _, merchant, text, at in rows]
        return Page([Seen(merchant, [number], at, at) for merchant, number, at in numbers if number is not None], more)

    def taken(self) -> None:
        """Goes on behind the page; after the last one a new pass begins."""
        if self._next_after == self._after:
            self.failed()
        else:
            self._after = self._next_after

    def failed(self) -> None:
        """Begins a new pass at the stored horizon."""
        self._horizons, self._after, self._next_after = None, START, START


def as_number(text: str) -> int | None:
    """The number in a header; None for what is none of 0 to 2^63-1."""
    if not (text.isascii() and text.isdigit()) or len(text) > 19:
        return None
    number = int(text)
    return number if number <= NUMBER_MAX else None
