"""Taking rows over: each is new, there already, or different; only what is new is written, a chunk a transaction."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.types.json import set_json_loads

from tallyhook.errors import DatabaseUnavailable, FenceLost, TallyhookError, UsageError
from tallyhook.operations.cutover.columns import BALANCES, CORRELATIONS, DEPOSITS, GROUPS, WITHDRAWALS, Kind
from tallyhook.operations.cutover.comparing import differing, load_json
from tallyhook.operations.cutover.reading import Row, read_staged
from tallyhook.operations.cutover.staging import Staging, Tell
from tallyhook.postgres import Connection, Queries
from tallyhook.settings import Installation

OWNERS_A_CHUNK = 500
BUSY_SECONDS = 5
LOCK_SECONDS = 30
UNSAFE_BESIDE_A_SINK = frozenset({"correlations", "withdrawals", "fills", "reversals"})
"""Files of which the sink must not see one without the others."""


class ImportBusy(TallyhookError):
    """Another import works on this installation."""


@dataclass(frozen=True, slots=True)
class Different:
    """A row that is here with other content; it stays as it is.

    Args:
        kind: its plural.
        place: of the source's row.
        member: the column, or what cannot be told.
        imported: whether the row here was taken over before; otherwise the sink made it.
    """

    kind: str
    object_id: str
    place: str
    member: str
    here: Any
    there: Any
    imported: bool


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A row that was taken over, of which the old handler has left an effect undone; nothing here will do it."""

    kind: str
    object_id: str
    place: str
    mark: str
    what: str


@dataclass(frozen=True, slots=True)
class Counted:
    """So many rows of a kind are new (written, unless it is a dry run) and so many were there already."""

    kind: str
    new: int
    same: int


Outcome = Different | Unfinished | Counted
Staged = Mapping[str, tuple[str, Mapping[str, Any]]]
"""Rows kept aside of one kind, by key: their place in the source and their content."""


class Import:
    """One import, in a session of its own.

    Args:
        connection: autocommit, used by nobody else.
        source: names the old handler in the entries' event ids.
        merchant: whose the balance transactions are where their rows do not tell.

    Raises:
        ImportBusy: another one is at work.
    """

    def __init__(self, connection: Connection, installation: Installation, source: str, merchant: str | None) -> None:
        self._connection = connection
        self._queries = Queries("tallyhook.operations.cutover", "import.sql", installation.schema_name)
        self._source, self._merchant = source, merchant
        set_json_loads(load_json, connection)
        # A session that was interrupted lives on for a moment.
        self._rows("patience", (f"{BUSY_SECONDS}s",))
        try:
            self._rows("lock", (installation.lock_key("import"),))
        except psycopg.errors.LockNotAvailable:
            raise ImportBusy("another import works on this installation; wait until it has ended") from None
        self._rows("patience", (f"{LOCK_SECONDS}s",))
        self.staging = Staging(connection, self._queries)

    def refuse_beside_a_sink(self, kind: Kind) -> None:
        """Raises UsageError for a file whose rows a running sink must not see alone."""
        if kind.plural in UNSAFE_BESIDE_A_SINK and self._value("running_sinks"):
            raise UsageError(
                f"a sink runs, and {kind.plural} without what belongs to them could make an effect leave twice:"
                " stop the sink, or use `tallyhook import all`"
            )

    def run(self, tell: Tell, *, dry_run: bool) -> Iterator[Outcome]:
        """Writes what is new of the rows kept aside, and gives what was found of each chunk.

        Interrupted, it has written whole chunks, and done again it goes on behind them.

        Raises:
            DatabaseUnavailable: a sink holds its positions longer than half a minute.
            psycopg.Error: the chunk was rolled back.
        """
        totals = self.staging.count()
        for group in GROUPS:
            kinds = [kind.name for kind in group]
            total = sum(totals.get(name, 0) for name in kinds)
            after = ""
            while total:
                wanted = {"kinds": kinds, "after": after, "limit": OWNERS_A_CHUNK}
                owners = [owner for (owner,) in self._rows("next_owners", wanted)]
                if not owners:
                    break
                after = owners[-1]
                outcomes, rows = self._chunk(group, owners, dry_run=dry_run)
                tell(f"{'comparing' if dry_run else 'writing'} {group[0].plural}", rows, total)
                yield from outcomes

    def _chunk(self, group: Sequence[Kind], owners: list[str], *, dry_run: bool) -> tuple[list[Outcome], int]:
        with self._connection.transaction():
            if not dry_run:
                self._hold_sinks()
            wanted = {"owners": owners, "kinds": [kind.name for kind in group]}
            staged: dict[str, dict[str, tuple[str, Mapping[str, Any]]]] = {kind.name: {} for kind in group}
            for name, object_id, place, content in self._rows("staged_of", wanted):
                staged[name][object_id] = place, content
            outcomes: list[Outcome] = []
            for kind in group:
                if not staged[kind.name]:
                    continue
                new, found = self._judge(kind, staged[kind.name])
                outcomes += found
                if kind is WITHDRAWALS:
                    reversed_ones = {row["pg_withdrawal_id"] for _, row in staged.get("reversal", {}).values()}
                    outcomes += self._unfinished(staged[kind.name], new, reversed_ones)
                if new and not dry_run:
                    self._write(kind, new)
        return outcomes, sum(map(len, staged.values()))

    def _hold_sinks(self) -> None:
        try:
            self._connection.execute(self._queries["hold_sinks"])
        except psycopg.errors.LockNotAvailable:
            raise DatabaseUnavailable(
                f"a sink's transaction lasts longer than {LOCK_SECONDS} s; look at the sinks, then repeat the import,"
                " which goes on where it was"
            ) from None

    def _judge(
        self, kind: Kind, staged: Mapping[str, tuple[str, Mapping[str, Any]]]
    ) -> tuple[list[str], list[Outcome]]:
        """The keys that are new, and what is to be told."""
        ids = sorted(staged)
        imported = dict(self._rows("imported", {"kind": kind.name, "ids": ids}))
        left = [object_id for object_id in ids if object_id not in imported]
        if kind is BALANCES:
            here, doubtful = {}, {user for (user,) in self._rows("moved_otherwise", {"ids": left})}
        else:
            here, doubtful = dict(self._rows(f"here_{kind.name}", {"ids": left})), set()
        owners = dict(self._rows("here_correlation", {"ids": left})) if kind is DEPOSITS else {}
        outcomes: list[Outcome] = []
        counts: Counter[str] = Counter()
        new = []
        for object_id in ids:
            place, content = staged[object_id]
            row = read_staged(kind, content)
            known = imported.get(object_id, here.get(object_id))
            unlike = [] if known is None else differing(kind, known, row)
            if object_id in owners:
                # To whom a deposit belongs is decided by its correlation, so that both must say the same.
                unlike += differing(CORRELATIONS, owners[object_id], _owner_of(row))
            if object_id in doubtful and row.get("explained_minor") is None:
                unlike.append(("explained_minor", "the sink has moved this balance before", None))
            if unlike:
                outcomes += [
                    Different(kind.plural, object_id, place, *values, object_id in imported) for values in unlike
                ]
            elif known is None:
                new.append(object_id)
            else:
                counts["same"] += 1
        # In a dry run the correlations of new deposits are not there yet, though they come with these.
        with_deposits = self._with_deposits(new) if kind is CORRELATIONS else set()
        new = [object_id for object_id in new if object_id not in with_deposits]
        return new, [*outcomes, Counted(kind.plural, len(new), counts["same"] + len(with_deposits))]

    def _unfinished(self, staged: Staged, new: Sequence[str], reversed_ones: set[str]) -> list[Outcome]:
        """What the old handler has left undone, also of rows that are here already, as long as nobody has done it."""
        found = list(_unfinished(staged, reversed_ones))
        before = [one.object_id for one in found if one.object_id not in new]
        here = dict(self._rows("here_withdrawal", {"ids": before})) if before else {}
        return [one for one in found if one.object_id in new or here.get(one.object_id, {}).get(one.mark) is None]

    def _with_deposits(self, owners: list[str]) -> set[str]:
        found = self._rows("staged_of", {"owners": owners, "kinds": [DEPOSITS.name]})
        return {object_id for _, object_id, _, content in found if content.get("merchant_reference") is not None}

    def _write(self, kind: Kind, new: list[str]) -> None:
        wanted = {"ids": new, "source": self._source, "kind": kind.name, "merchant": self._merchant}
        if kind is DEPOSITS:
            self._connection.execute(self._queries["write_correlation"], wanted)
            self._connection.execute(self._queries["write_deposit_entries"], wanted)
        written = self._connection.execute(self._queries[f"write_{kind.name}"], wanted).rowcount
        if written != len(new):
            raise FenceLost(
                f"{written} of {len(new)} {kind.plural} could be written: somebody else writes to these tables; the"
                " chunk was rolled back. Stop him, then repeat the import, which goes on where it was"
            )

    def _rows(self, name: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        return self._connection.execute(self._queries[name], parameters).fetchall()

    def _value(self, name: str, parameters: Any = None) -> Any:
        return self._rows(name, parameters)[0][0]


def _owner_of(row: Row) -> Row:
    names = ("merchant_reference", "our_order_id", "our_user_id")
    return {name: row[name] for name in names if row.get(name) is not None}


def _unfinished(staged: Staged, reversed_ones: set[str]) -> Iterator[Unfinished]:
    """Withdrawals whose marks say that the effect of their status never left."""
    for object_id in sorted(staged):
        place, row = staged[object_id]
        status = row["status"]
        mark, said = None, f"it is {status}"
        if status in ("expired", "canceled") and row.get("refund_enqueued_at", "") is None:
            mark = "refund_enqueued_at"
        elif status == "rejected" and row.get("user_lock_released_at", "") is None:
            mark = "user_lock_released_at"
        elif (status, row["remaining_minor"], row["closed_at"]) == ("settled", 0, None):
            mark, said = (None, "") if object_id in reversed_ones else ("closed_at", "it is settled, nothing remains,")
        if mark is not None:
            yield Unfinished(WITHDRAWALS.plural, object_id, place, mark, f"{said} and {mark} is empty")
