"""Reversals: a chunk that had been paid out was taken back; what is kept of it is its tombstone.

A tombstone is a fact: it is kept from late events too and may come before its fill, and the first one seen stays.
Source: the gateway's page on partial fills, part 3 of the handler.
"""

import msgspec

from schemas.events import ReversalBody, ReversedFillBody, WithdrawalEvent
from sinks.domain.decision import Refusal
from sinks.domain.fills import PATH as FILL_PATH
from sinks.domain.fills import contradictions
from sinks.domain.instants import instant
from sinks.domain.keys import key_fault
from sinks.domain.shape import shape_detail
from sinks.domain.shown import shown
from sinks.domain.withdrawal_state import Facts, Tombstone

PATH = "data.reversal"
REPLACEMENT_PATH = "data.replacement_withdrawal_id"
REASON_CODES = ("BANK_RECALL", "ACCOUNT_FROZEN", "SLIP_INVALIDATED_AFTER_SETTLEMENT")

_CONTENT = (
    "pg_withdrawal_id",
    "reason_code",
    "reverses_balance_transaction_id",
    "reversal_balance_transaction_id",
    "amount_minor",
    "replacement_withdrawal_id",
)
"""What two observations of one reversal must agree on; the instant and the order's status are those of the first."""

_decode_fill = msgspec.json.Decoder(ReversedFillBody).decode
_decode_reversal = msgspec.json.Decoder(ReversalBody).decode
_decode_replacement = msgspec.json.Decoder(str | None).decode


def read_tombstone(event: WithdrawalEvent) -> Tombstone | Refusal:
    """The reversal of a `withdrawal.fill_reversed`, or what it lacks, or where it contradicts itself."""
    path = FILL_PATH
    try:
        fill = _decode_fill(event.data.fill)
        path = PATH
        reversal = _decode_reversal(event.data.reversal)
        path = REPLACEMENT_PATH
        replacement = _decode_replacement(event.data.replacement_withdrawal_id)
    except msgspec.ValidationError as failure:
        return Refusal("reversal_shape", shape_detail(failure, path))
    fault = _fault(fill, reversal)
    if fault is not None:
        return Refusal("reversal_shape", fault)
    reversed_at = instant(event.created_at)
    if reversed_at is None:
        return Refusal("reversal_shape", f"created_at is {shown(event.created_at)}")
    order = event.data.object
    return Tombstone(
        fill.leg_ref,
        order.id,
        reversal.reason_code,
        reversal.reverses_balance_transaction_id,
        reversal.balance_transaction_id,
        reversed_at,
        fill.amount_minor,
        order.status,
        replacement,
    )


def _fault(fill: ReversedFillBody, reversal: ReversalBody) -> str | None:
    """The member that breaks a rule of the tombstone table, with its value."""
    reverses, reversing = reversal.reverses_balance_transaction_id, reversal.balance_transaction_id
    if reversal.reason_code not in REASON_CODES:
        return f"{PATH}.reason_code is {shown(reversal.reason_code)}"
    if reverses != fill.balance_transaction_id:
        return (
            f"{PATH}.reverses_balance_transaction_id is {shown(reverses)},"
            f" {FILL_PATH}.balance_transaction_id is {shown(fill.balance_transaction_id)}"
        )
    if reversing == reverses:
        return f"{PATH}.balance_transaction_id {shown(reversing)} would reverse itself"
    return (
        key_fault(f"{FILL_PATH}.leg_ref", fill.leg_ref)
        or key_fault(f"{PATH}.reverses_balance_transaction_id", reverses)
        or key_fault(f"{PATH}.balance_transaction_id", reversing)
    )


def keep_tombstone(tombstone: Tombstone, facts: Facts) -> Tombstone | Refusal | None:
    """The reversal to be kept; None when the same one is known.

    One that contradicts what is known of its chunk, or that names a transaction of another chunk's reversal, is
    refused.
    """
    leg_ref = tombstone.leg_ref
    stored, fill = facts.tombstone(leg_ref), facts.fill(leg_ref)
    if stored is not None:
        differing = [name for name in _CONTENT if getattr(stored, name) != getattr(tombstone, name)]
        if differing:
            return _collision(leg_ref, f"is known with another {', '.join(differing)}")
    for transaction_id in (tombstone.reverses_balance_transaction_id, tombstone.reversal_balance_transaction_id):
        holder = facts.tombstone_of(transaction_id)
        if holder is not None and holder.leg_ref != leg_ref:
            return _collision(
                leg_ref, f"names transaction {shown(transaction_id)} of the reversal of chunk {shown(holder.leg_ref)}"
            )
    if fill is not None:
        differing = contradictions(fill, tombstone)
        if differing:
            return _collision(leg_ref, f"takes back a chunk with another {', '.join(differing)}")
    return tombstone if stored is None else None


def _collision(leg_ref: str, detail: str) -> Refusal:
    return Refusal("reversal_collision", f"the reversal of chunk {shown(leg_ref)} {detail}")
