"""The order of 1,000 baht that is paid out in chunks of 300, 400 and 300, and other records of tests."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tallyhook.operations.timeline.records import (
    Deposit,
    DepositRow,
    EntryRow,
    FillRow,
    FlagRow,
    Newest,
    ReversalRow,
    Withdrawal,
    WithdrawalRow,
)

WITHDRAWAL = "wdr_01K3PBQ7X4M2TN9YR0HDVKW6SC"
TICKET = "WD-20260821-0007"

FILLS = tuple(
    FillRow(
        leg_ref=leg_ref,
        sequence=sequence,
        amount_minor=amount,
        fee_recognized_minor=fee,
        settled_at=datetime(2026, 8, 21, 3, minute, second, 903_000, UTC),
        auto_confirm_at=None,
        balance_transaction_id=f"btxn_{sequence}",
        reversed_at=None,
    )
    for leg_ref, sequence, amount, fee, minute, second in (
        ("leg_4TQ2XM9K", 1, 30_000, 802, 19, 47),
        ("leg_7HB3ND5R", 2, 40_000, 1_070, 33, 12),
        ("leg_2WC8FJ6P", 3, 30_000, 803, 52, 40),
    )
)


def at(text: str) -> datetime:
    """A moment from its text."""
    return datetime.fromisoformat(text)


def row(version: int, status: str, filled: int, remaining: int, **members: Any) -> WithdrawalRow:
    """The order's row as it stands at a version."""
    made = WithdrawalRow(
        pg_withdrawal_id=WITHDRAWAL,
        pg_version=version,
        status=status,
        amount_total_minor=100_000,
        fee_total_minor=2_675,
        total_locked_minor=102_675,
        filled_minor=filled,
        remaining_minor=remaining,
        refunded_minor=None,
        fee_recognized_minor=None,
        settled_splits=None,
        our_ref=TICKET,
        replacement_withdrawal_id=None,
        closed_at=None,
        refund_enqueued_at=None,
        user_lock_released_at=None,
    )
    return replace(made, **members)


def withdrawal(made: WithdrawalRow, *fills: FillRow, **members: Any) -> Withdrawal:
    """The order with its chunks."""
    return replace(Withdrawal(made, fills, fills_total=len(fills)), **members)


def half_filled_and_expired() -> Withdrawal:
    """700 of 1,000 baht were paid out; 300 and 8.03 of the fee went back."""
    made = row(
        9,
        "expired",
        70_000,
        30_000,
        refunded_minor=30_000,
        fee_recognized_minor=1_872,
        settled_splits=2,
        refund_enqueued_at=at("2026-08-21T09:02:15Z"),
    )
    return withdrawal(made, *FILLS[:2])


def matched(reserved_minor: object, event_type: str = "withdrawal.matched") -> Newest:
    """The event of a payer's reservation."""
    entity = {"id": WITHDRAWAL, "object": "withdrawal_order", "reserved_minor": reserved_minor, "matched_legs": 1}
    return Newest(event_type, json.dumps({"type": event_type, "data": {"object": entity}}))


def reversal(fill: FillRow, moment: str) -> ReversalRow:
    """The tombstone of a chunk."""
    return ReversalRow(
        leg_ref=fill.leg_ref,
        reason_code="BANK_RECALL",
        amount_minor=fill.amount_minor,
        reversed_at=at(moment),
        status_snapshot="settled",
        reverses_balance_transaction_id=fill.balance_transaction_id or "",
        reversal_balance_transaction_id=f"back_{fill.balance_transaction_id}",
        replacement_withdrawal_id=None,
        effect_enqueued_at=at(moment),
    )


def deposit(status: str, **members: Any) -> Deposit:
    """A deposit of 500 baht; members of its row by name, and `entries`, `flags`, `newest`, `waiting` of the record."""
    record = {name: members.pop(name) for name in ("entries", "flags", "newest", "waiting") if name in members}
    made = DepositRow(
        pg_deposit_id="dep_new",
        pg_version=3,
        status=status,
        is_terminal=None,
        late_slip_accepted_until=None,
        ordered_amount_minor=50_000,
        transferred_amount_minor=None,
        amount_received_minor=None,
        fee_total_minor=None,
        credited_amount_minor=None,
        our_order_id="ord_5",
        our_user_id="usr_1",
        credited_user_at=None,
        reversed_at=None,
    )
    return replace(Deposit(replace(made, **members)), **record)


def entry(amount_minor: int, moment: str) -> EntryRow:
    """A credit or a debit of the deposit."""
    side = "credit" if amount_minor > 0 else "debit"
    return EntryRow(f"deposit:dep_new:{side}", "usr_1", amount_minor, "evt_1", at(moment))


def flag(amount_minor: int, moment: str) -> FlagRow:
    """An overpayment of the deposit."""
    return FlagRow("clm_1", 3, "same_transfer_excess", amount_minor, at(moment), None)


def told(member: str, value: object) -> Newest:
    """A deposit's event with one member more."""
    body = {"data": {"object": {"id": "dep_new", member: value}}}
    return Newest("deposit.any", json.dumps(body, ensure_ascii=False))
