"""Withdrawals: what an event of a withdrawal order means for its row, its chunks and the world outside.

The order's state comes from the snapshot, never from the event's type, which alone decides whether a chunk or a
reversal is kept. Source: the gateway's page on partial fills, "The correct handler".
"""

from dataclasses import dataclass, replace

from schemas.events import WITHDRAWAL_FILL_REVERSED, WITHDRAWAL_FILLED, WithdrawalEvent
from schemas.reasons import Reason
from sinks.domain.decision import EffectDraft, Refusal
from sinks.domain.fills import fee_differs, keep_fill, read_fill
from sinks.domain.reversals import keep_tombstone, read_tombstone
from sinks.domain.shape import parser
from sinks.domain.withdrawal_effects import (
    close_withdrawal,
    compensate_reversed_fill,
    refund_unfilled,
    release_user_lock,
    show_progress,
    update_local_status,
)
from sinks.domain.withdrawal_row import advance, build, complete, our_ref_of, reopen
from sinks.domain.withdrawal_state import (
    FactKeys,
    Facts,
    NotYet,
    Tombstone,
    Withdrawal,
    WithdrawalDecision,
    WithdrawalReading,
    WithdrawalState,
)

parse = parser(WithdrawalEvent)
"""The typed event of bytes that have passed `read_text`, or why they are none."""


def read(event: WithdrawalEvent) -> WithdrawalReading | Refusal:
    """Whether the event may be kept at all, and its parts: every event must pass, also a late one and one that waits.

    `data.fill`, `data.reversal` and `data.replacement_withdrawal_id` are looked at for the two types that mean them.
    """
    our_ref = our_ref_of(event.data.object)
    if event.type == WITHDRAWAL_FILLED:
        fill = read_fill(event)
        return fill if isinstance(fill, Refusal) else WithdrawalReading(event, our_ref, fill=fill)
    if event.type == WITHDRAWAL_FILL_REVERSED:
        tombstone = read_tombstone(event)
        return tombstone if isinstance(tombstone, Refusal) else WithdrawalReading(event, our_ref, tombstone=tombstone)
    return WithdrawalReading(event, our_ref)


def keys_of(reading: WithdrawalReading) -> FactKeys | None:
    """Which facts must be at hand to decide; None for an event that carries none."""
    if reading.fill is not None:
        return FactKeys(reading.fill.leg_ref)
    if reading.tombstone is not None:
        tombstone = reading.tombstone
        return FactKeys(
            tombstone.leg_ref,
            (tombstone.reverses_balance_transaction_id, tombstone.reversal_balance_transaction_id),
        )
    return None


def can_build(reading: WithdrawalReading) -> bool:
    """Whether the snapshot suffices for a row; an event that does not waits until another one has built it."""
    order = reading.event.data.object
    return order.amount_total_minor is not None and order.remaining_minor is not None


def decide(state: WithdrawalState, reading: WithdrawalReading, facts: Facts) -> WithdrawalDecision | NotYet | Refusal:
    """What the event does to its withdrawal, or that it must wait, or why it may do nothing at all.

    Only a version above the row's moves the totals and tells the order's status on; chunks and reversals are kept
    whatever the version, and a reversal that is new is compensated.
    """
    before, order = state.row, reading.event.data.object
    if before is None:
        advanced, row = True, build(order, reading.our_ref)
        if row is None:
            return NotYet()
    elif order.version > before.pg_version:
        advanced, row = True, advance(before, order, reading.our_ref)
    else:
        advanced, row = False, complete(before, order, reading.our_ref)
    if reading.tombstone is not None:
        return _take_back(state, row, reading.tombstone, facts, order.version, advanced=advanced)
    fill = reading.fill
    kept = None if fill is None else keep_fill(fill, facts)
    if isinstance(kept, Refusal):
        return kept
    differs = fill is not None and fee_differs(fill, order.filled_minor, row)
    if not advanced:
        reason: Reason = "older_version" if kept is None else "late_fact"
        return WithdrawalDecision(_after(state, row), "late", reason, fill=kept, fee_differs=differs)
    outcome = _tell(reading.event.id, row, settled_tombstone=state.settled_tombstone)
    if isinstance(outcome, Refusal):
        return outcome
    effects = () if outcome.effect is None else (outcome.effect,)
    return WithdrawalDecision(
        _after(state, outcome.row), "advanced", outcome.reason, effects, fill=kept, fee_differs=differs
    )


def _take_back(
    state: WithdrawalState, row: Withdrawal, tombstone: Tombstone, facts: Facts, version: int, *, advanced: bool
) -> WithdrawalDecision | Refusal:
    """Keeps the reversal, opens the withdrawal again and compensates, once a chunk.

    Where the event also ends the order, that one-shot goes out too; nothing else does. The order's status is that of
    the highest version, as ever: a reversal does not rewrite it.
    """
    kept = keep_tombstone(tombstone, facts)
    if isinstance(kept, Refusal):
        return kept
    row = reopen(row, tombstone.replacement_withdrawal_id)
    end = _end(row) if advanced else None
    if isinstance(end, Refusal):
        return end
    outcome = end or _Outcome(row)
    if advanced:
        reason = outcome.reason if kept is not None else "already_compensated"
    else:
        reason = "older_version" if kept is None else "late_fact"
    compensation = None if kept is None else compensate_reversed_fill(kept, version)
    settled = state.settled_tombstone or (kept is not None and kept.status_snapshot == "settled")
    fill = facts.fill(tombstone.leg_ref)
    return WithdrawalDecision(
        _after(replace(state, settled_tombstone=settled), outcome.row),
        "advanced" if advanced else "late",
        reason,
        tuple(effect for effect in (compensation, outcome.effect) if effect is not None),
        tombstone=kept,
        fill_reversed=(fill.leg_ref, tombstone.reversed_at) if fill is not None and fill.reversed_at is None else None,
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What the status of an event that was news does: the row with its markers, and the effect or why there is none."""

    row: Withdrawal
    effect: EffectDraft | None = None
    reason: Reason | None = None


def _tell(event_id: str, row: Withdrawal, *, settled_tombstone: bool) -> _Outcome | Refusal:
    if row.status == "partially_filled":
        return _Outcome(row, show_progress(event_id, row))
    if row.status == "settled":
        return _close(row, settled_tombstone=settled_tombstone)
    return _end(row) or _Outcome(row, update_local_status(event_id, row))


def _close(row: Withdrawal, *, settled_tombstone: bool) -> _Outcome:
    """Closes a withdrawal of which all was paid out; the world hears of it once, also where it was opened again."""
    if row.remaining_minor != 0:
        return _Outcome(row, reason="not_all_filled")
    if settled_tombstone:
        # The gateway leaves such an order settled, so its later snapshots say nothing about the chunk that was lost.
        return _Outcome(row, reason="reversed_after_settlement")
    if row.closed:
        return _Outcome(row, reason="already_closed")
    closed = replace(row, closed=True, close_enqueued=True)
    if row.close_enqueued:
        return _Outcome(closed, reason="already_closed")
    return _Outcome(closed, close_withdrawal(closed))


def _end(row: Withdrawal) -> _Outcome | Refusal | None:
    """Gives back what an order that ended held, once in its life; None for a status that ends nothing."""
    if row.status in ("expired", "canceled"):
        if row.refund_enqueued:
            return _Outcome(row, reason="already_refunded")
        refund = refund_unfilled(row)
        if isinstance(refund, Refusal):
            return refund
        return _Outcome(replace(row, refund_enqueued=True), refund)
    if row.status == "rejected":
        if row.lock_released:
            return _Outcome(row, reason="already_released")
        return _Outcome(replace(row, lock_released=True), release_user_lock(row))
    return None


def _after(state: WithdrawalState, row: Withdrawal) -> WithdrawalState:
    return state if row is state.row else WithdrawalState(state.pg_withdrawal_id, row, state.settled_tombstone)
