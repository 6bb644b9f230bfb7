"""Effects of withdrawals: their payloads, and the keys that make each of them happen once.

Payloads are made from the row after the event, never from its snapshot, which may be sparse. One-shot effects are keyed
by the withdrawal, a compensation by its chunk; effects that only show how far it got are keyed by the event.
"""

from schemas.effects import (
    CloseWithdrawal,
    CompensateReversedFill,
    EffectName,
    RefundUnfilled,
    ReleaseUserLock,
    ShowProgress,
    UpdateLocalStatus,
)
from sinks.domain.decision import EffectDraft, Refusal
from sinks.domain.withdrawal_state import Tombstone, Withdrawal

BIGINT_MIN, BIGINT_MAX = -(1 << 63), (1 << 63) - 1


def show_progress(event_id: str, row: Withdrawal) -> EffectDraft:
    """Some of it was paid out."""
    payload = ShowProgress(row.our_ref, row.filled_minor, row.amount_total_minor)
    return EffectDraft("show_progress", f"{event_id}:show_progress", payload, row.pg_version)


def update_local_status(event_id: str, row: Withdrawal) -> EffectDraft:
    """Any status without a meaning of its own here, known or not."""
    payload = UpdateLocalStatus(row.our_ref, row.status)
    return EffectDraft("update_local_status", f"{event_id}:update_local_status", payload, row.pg_version)


def close_withdrawal(row: Withdrawal) -> EffectDraft:
    """All of it was paid out."""
    return _once(row, "close_withdrawal", CloseWithdrawal(row.pg_withdrawal_id, row.our_ref))


def release_user_lock(row: Withdrawal) -> EffectDraft:
    """It was not approved."""
    return _once(row, "release_user_lock", ReleaseUserLock(row.pg_withdrawal_id, row.our_ref))


def refund_unfilled(row: Withdrawal) -> EffectDraft | Refusal:
    """It ended before all was paid out: the rest, and the part of the fee that was not used, go back to the user.

    A sum is null where one of its parts is not known, and refused where it is no bigint any more.
    """
    fee_unused = _sum(row.fee_total_minor, _negative(row.fee_recognized_minor))
    release = _sum(row.refunded_minor, fee_unused)
    debited = _sum(row.filled_minor, row.fee_recognized_minor)
    for name, amount in (("fee_unused", fee_unused), ("release", release), ("debited", debited)):
        if amount is not None and not BIGINT_MIN <= amount <= BIGINT_MAX:
            return Refusal("body_shape", f"data.object: the amounts add up to {name}_minor {amount}, no bigint")
    payload = RefundUnfilled(
        row.pg_withdrawal_id,
        row.our_ref,
        refunded_minor=row.refunded_minor,
        fee_unused_minor=fee_unused,
        release_minor=release,
        debited_minor=debited,
    )
    return _once(row, "refund_unfilled", payload)


def compensate_reversed_fill(tombstone: Tombstone, version: int) -> EffectDraft:
    """A chunk was taken back.

    Args:
        version: of the withdrawal, in the event that brought the reversal.
    """
    payload = CompensateReversedFill(
        withdrawal_id=tombstone.pg_withdrawal_id,
        leg_ref=tombstone.leg_ref,
        amount_minor=tombstone.amount_minor,
        reason_code=tombstone.reason_code,
        reverses_balance_transaction_id=tombstone.reverses_balance_transaction_id,
        reversal_balance_transaction_id=tombstone.reversal_balance_transaction_id,
        replacement_withdrawal_id=tombstone.replacement_withdrawal_id,
    )
    key = f"withdrawal-fill:{tombstone.leg_ref}:reverse:compensate_reversed_fill"
    return EffectDraft("compensate_reversed_fill", key, payload, version)


def _once(
    row: Withdrawal, name: EffectName, payload: CloseWithdrawal | RefundUnfilled | ReleaseUserLock
) -> EffectDraft:
    return EffectDraft(name, f"withdrawal:{row.pg_withdrawal_id}:{name}", payload, row.pg_version)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _negative(amount: int | None) -> int | None:
    return None if amount is None else -amount
