"""Rows as JSON objects for `jsonb_to_recordset`; what is absent is left out and becomes SQL NULL."""

import msgspec

from sinks.domain.decision import DepositState, FlagDraft
from sinks.domain.deposits import json_or_none
from sinks.domain.withdrawal_state import Fill
from sinks.plan import EntryRow, Plan, TransactionRow


def deposit_row(state: DepositState) -> dict[str, object]:
    """The columns of pg_deposits after a batch; the state must have advanced."""
    if state.snapshot is None:
        raise ValueError(f"deposit {state.pg_deposit_id} did not advance")
    deposit = state.snapshot.data.object
    row: dict[str, object] = {
        "pg_deposit_id": state.pg_deposit_id,
        "pg_version": deposit.version,
        "status": deposit.status,
        "is_terminal": deposit.is_terminal,
        "late_slip_accepted_until": deposit.late_slip_accepted_until,
        "ordered_amount_minor": deposit.ordered_amount_minor,
        "transferred_amount_minor": deposit.transferred_amount_minor,
        "amount_received_minor": deposit.amount_received_minor,
        "fee_total_minor": deposit.fee_total_minor,
        "credited_amount_minor": deposit.credited_amount_minor,
        "balance_transaction_id": deposit.balance_transaction_id,
        "clearing_available_at": deposit.clearing_available_at,
        "our_order_id": state.correlation.our_order_id,
        "our_user_id": state.correlation.our_user_id,
        "credited": state.credit is not None,
        "reversed": state.reversed,
    }
    # A member that is JSON null would become JSON null in a jsonb column; one that is left out becomes SQL NULL.
    for name, raw in (("fee_breakdown", deposit.fee_breakdown), ("overpayment", deposit.overpayment)):
        value = json_or_none(raw)
        if value is not None:
            row[name] = msgspec.Raw(value)
    return row


def flag_row(draft: FlagDraft) -> dict[str, object]:
    """The columns of pg_deposit_overpayment_flags."""
    flag = draft.flag
    return {
        "claim_id": flag.claim_id,
        "pg_deposit_id": draft.pg_deposit_id,
        "version": draft.observed_deposit_version,
        "cause": flag.cause,
        "amount_minor": flag.amount_minor,
        "slip_received_at": draft.slip_received_at,
        "status": flag.status,
        "action_required": flag.action_required,
        "expected_response_at": draft.expected_response_at,
        "raw": msgspec.Raw(draft.raw),
    }


def entry_row(row: EntryRow) -> dict[str, object]:
    """The columns of pg_user_balance_entries."""
    draft = row.draft
    return {"key": draft.entry_key, "user_id": draft.user_id, "amount": draft.amount_minor, "event_id": row.event_id}


def fill_rows(plan: Plan) -> list[Fill]:
    """The columns of pg_withdrawal_fills: the new chunks, and the legs of reversals that have none."""
    kept = (
        Fill(leg_ref, plan.reversals[leg_ref].pg_withdrawal_id, plan.reversals[leg_ref].amount_minor)
        for leg_ref in sorted(plan.unfilled)
    )
    return [*(plan.fills[leg_ref] for leg_ref in sorted(plan.fills)), *kept]


def transaction_row(row: TransactionRow) -> dict[str, object]:
    """The columns of pg_balance_txns."""
    moved = row.transaction
    columns: dict[str, object] = {
        "btxn_id": moved.btxn_id,
        "type": moved.type,
        "direction": moved.direction,
        "amount_minor": moved.amount_minor,
        "bucket_from": moved.bucket_from,
        "bucket_to": moved.bucket_to,
        "source_id": moved.source_id,
        "created_at": moved.created_at,
        "merchant_id": row.merchant_id,
    }
    if moved.balance_after is not None:
        columns["balance_after"] = msgspec.Raw(moved.balance_after)
    return columns
