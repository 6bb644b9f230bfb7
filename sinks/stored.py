"""Rows as they are read from the tables, made into what the rules decide on."""

from collections.abc import Sequence
from typing import Any

from schemas.events import Overpayment
from sinks.domain.decision import Correlation, Credit, DepositState, FlagDraft
from sinks.domain.withdrawal_state import Fill, Tombstone, Transaction, Withdrawal, WithdrawalState
from sinks.errors import LedgerBroken

Row = Sequence[Any]


def deposit_state(row: Row) -> DepositState:
    """A row of `load_deposits`; raises LedgerBroken where a credited deposit has no credit entry."""
    key, version, order_id, user_id, taken_back, credited, entry = row
    if credited and entry is None:
        raise LedgerBroken(
            f"deposit {key} is marked as credited and has no entry deposit:{key}:credit in pg_user_balance_entries;"
            " restore the entry (see `tallyhook audit`): nothing is decided on a ledger that contradicts itself"
        )
    credit = Credit(entry[0], int(entry[1])) if entry is not None else None
    return DepositState(key, Correlation(order_id, user_id), version, None, credit, taken_back)


def flag(row: Row) -> FlagDraft:
    """A row of `load_flags`."""
    claim_id, deposit_id, version, cause, amount_minor, slip_received_at, status, action, expected_response_at, raw = (
        row
    )
    seen = Overpayment(claim_id, cause, amount_minor, slip_received_at.isoformat(), status, action)
    return FlagDraft(deposit_id, version, seen, slip_received_at, expected_response_at, raw.encode())


def withdrawal_state(row: Row) -> WithdrawalState:
    """A row of `load_withdrawals`."""
    *columns, settled_tombstone = row
    return WithdrawalState(columns[0], Withdrawal(*columns), settled_tombstone)


def fill(row: Row) -> Fill:
    """A row of `load_fills`."""
    return Fill(*row)


def tombstone(row: Row) -> Tombstone:
    """A row of `load_reversals`."""
    return Tombstone(*row)


def transaction(row: Row) -> Transaction:
    """A row of `load_transactions`; the balance after it is not read, since it is not compared."""
    return Transaction(*row)
