"""Writes what a batch decided about withdrawals and balance transactions: rows first, then the facts that name them."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import msgspec
import psycopg

from sinks.plan import Plan
from sinks.rows import fill_rows, transaction_row
from tallyhook.postgres import Connection, Queries

LOCKS = 128
"""Transactions of reversals share so many locks: PostgreSQL has room for some thousands in all sessions together."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Counted:
    """A statement that must have touched just as many rows as decided; its count is known when the pipeline ends."""

    name: str
    expected: int
    cursor: psycopg.Cursor[tuple[Any, ...]]


class WithdrawalWriting:
    """Writes for one batch, in an order that is the same for all workers; holds no state between batches.

    Args:
        connection: in the batch's transaction and in pipeline mode.
        queries: the statements of `withdrawals.sql`.
        lock_space: the installation's key for locks on the transactions of reversals (32 bits, signed).
    """

    def __init__(self, connection: Connection, queries: Queries, lock_space: int) -> None:
        self._connection, self._queries, self._lock_space = connection, queries, lock_space

    def write(self, plan: Plan) -> list[Counted]:
        """Sends the statements; raises psycopg.Error. The counts are to be compared after the pipeline."""
        counted: list[Counted] = []
        for name, rows in (("write_withdrawals", plan.withdrawals), ("mark_withdrawals", plan.marked)):
            if rows:
                counted.append(self._insert(name, [rows[key] for key in sorted(rows)]))
        if plan.fills or plan.unfilled:
            counted += self._write_fills(plan)
        if plan.reversals:
            counted += self._write_reversals(plan)
        if plan.fill_marks:
            legs = sorted(plan.fill_marks)
            counted.append(self._count("mark_fills", len(legs), (legs, [plan.fill_marks[leg_ref] for leg_ref in legs])))
        if plan.transactions:
            moved = [transaction_row(plan.transactions[key]) for key in sorted(plan.transactions)]
            counted.append(self._insert("write_transactions", moved))
        return counted

    def _write_fills(self, plan: Plan) -> list[Counted]:
        counted = [self._insert("write_fills", fill_rows(plan))]
        if plan.unfilled:
            kept = sorted(plan.unfilled)
            counted.append(self._count("give_back_legs", len(kept), (kept,)))
        if plan.fills:
            # What another partition has kept of these chunks since they were looked up.
            reversed_before = sum(
                fill.reversed_at is not None and leg_ref not in plan.reversals for leg_ref, fill in plan.fills.items()
            )
            counted.append(self._count("find_reversed", reversed_before, (sorted(plan.fills),)))
        return counted

    def _write_reversals(self, plan: Plan) -> list[Counted]:
        reversals = [plan.reversals[leg_ref] for leg_ref in sorted(plan.reversals)]
        named = {row.reverses_balance_transaction_id for row in reversals}
        named |= {row.reversal_balance_transaction_id for row in reversals}
        locks = sorted({crc32(transaction_id.encode()) % LOCKS for transaction_id in named})
        self._connection.execute(self._queries["lock_transactions"], {"space": self._lock_space, "locks": locks})
        return [
            self._count("find_taken", 0, {"transactions": sorted(named)}),
            self._insert("write_reversals", reversals),
        ]

    def _insert(self, name: str, rows: Collection[object]) -> Counted:
        return self._count(name, len(rows), (_encode(rows).decode(),))

    def _count(self, name: str, expected: int, parameters: Any) -> Counted:
        return Counted(name, expected, self._connection.execute(self._queries[name], parameters))
