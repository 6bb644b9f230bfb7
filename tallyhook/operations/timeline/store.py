"""Reading the records of objects: by the object's id, or by the merchant's own words for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from psycopg.rows import class_row, dict_row

from tallyhook.operations.timeline.records import (
    Deposit,
    DepositRow,
    EntryRow,
    FillRow,
    FlagRow,
    Newest,
    Record,
    ReversalRow,
    Transaction,
    TransactionRow,
    Unfinished,
    Waiting,
    Withdrawal,
    WithdrawalRow,
)
from tallyhook.postgres import Connection, Queries

By = Literal["id", "order", "user", "ticket"]
"""What a key is: the object's id, or the merchant's order, user or ticket (our_ref of a withdrawal)."""

LIMIT_MAX = 1000
"""Most objects of a key, and most rows of each sort (chunks, reversals, overpayments) that a page reads."""

Row = TypeVar("Row")


@contextmanager
def one_moment(connection: Connection) -> Iterator[None]:
    """What is read within it stands as of one moment, however much is written meanwhile."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


@dataclass(frozen=True, slots=True)
class Found:
    """The objects of a key.

    Args:
        total: how many there are, shown or not.
    """

    object_ids: tuple[str, ...]
    total: int


class TimelineStore:
    """The tables of one installation.

    Args:
        limit: most objects of a key.
    """

    def __init__(self, connection: Connection, schema: str, limit: int) -> None:
        self._connection = connection
        self._queries = Queries("tallyhook.operations.timeline", "timeline.sql", schema)
        self._limit = limit

    def find(self, key: str, by: By) -> Found:
        """The objects of a key, those that changed last first; an id is taken as it is."""
        if by == "id":
            return Found((key,), 1)
        rows = self._connection.execute(self._queries[f"by_{by}"], {"key": key, "limit": self._limit}).fetchall()
        return Found(tuple(row[0] for row in rows), rows[0][1] if rows else 0)

    def read(self, object_id: str) -> tuple[Record, ...]:
        """Everything that goes by this id; empty for one that no store knows."""
        waiting, known = self._waiting(object_id)
        records: list[Record] = []
        withdrawal = self._one(WithdrawalRow, "withdrawal", object_id)
        if withdrawal is not None:
            records.append(self._withdrawal(withdrawal, waiting))
        deposit = self._one(DepositRow, "deposit", object_id)
        if deposit is not None:
            records.append(self._deposit(deposit, waiting))
        transaction = self._one(TransactionRow, "transaction", object_id)
        if transaction is not None:
            records.append(Transaction(transaction))
        if not records and known:
            records.append(Unfinished(object_id, waiting))
        return tuple(records)

    def transactions_from(self, object_id: str) -> tuple[TransactionRow, ...]:
        """The movements of the gateway's ledger that name the object as their source."""
        return self._rows(TransactionRow, "transactions_from", object_id)

    def _withdrawal(self, row: WithdrawalRow, waiting: Waiting) -> Withdrawal:
        object_id = row.pg_withdrawal_id
        totals = self._connection.execute(self._queries["facts_total"], {"object_id": object_id}).fetchone() or (0, 0)
        return Withdrawal(
            row,
            self._rows(FillRow, "fills", object_id),
            self._rows(ReversalRow, "reversals", object_id),
            fills_total=totals[0],
            reversals_total=totals[1],
            newest=self._one(Newest, "newest", object_id, version=row.pg_version),
            waiting=waiting,
        )

    def _deposit(self, row: DepositRow, waiting: Waiting) -> Deposit:
        object_id = row.pg_deposit_id
        keys = [f"deposit:{object_id}:credit", f"deposit:{object_id}:debit"]
        return Deposit(
            row,
            self._rows(EntryRow, "entries", object_id, entry_keys=keys),
            self._rows(FlagRow, "flags", object_id),
            self._one(Newest, "newest", object_id, version=row.pg_version),
            waiting,
        )

    def _waiting(self, object_id: str) -> tuple[Waiting, bool]:
        with self._connection.cursor(row_factory=dict_row) as cursor:
            row = cursor.execute(self._queries["waiting"], {"object_id": object_id}).fetchone() or {}
        waiting = Waiting(tuple(row["kinds"]), row["parked"], row["set_aside"])
        return waiting, bool(waiting.kinds) or row["was_set_aside"]

    def _one(self, made: type[Row], query: str, object_id: str, **more: Any) -> Row | None:
        found = self._rows(made, query, object_id, **more)
        return found[0] if found else None

    def _rows(self, made: type[Row], query: str, object_id: str, **more: Any) -> tuple[Row, ...]:
        wanted = {"object_id": object_id, "limit": LIMIT_MAX} | more
        with self._connection.cursor(row_factory=class_row(made)) as cursor:
            return tuple(cursor.execute(self._queries[query], wanted).fetchall())
