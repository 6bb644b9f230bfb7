"""Fills: the chunks in which a withdrawal is paid out.

A fill is a fact: it is kept from late events too, and the first one seen of a chunk stays.
Source: the gateway's page on partial fills, "What to store, and how".
"""

from dataclasses import replace
from datetime import datetime

import msgspec

from schemas.events import FillBody, WithdrawalEvent
from sinks.domain.chunk_fee import chunk_fee_minor
from sinks.domain.decision import Refusal
from sinks.domain.instants import instant
from sinks.domain.keys import key_fault
from sinks.domain.shape import shape_detail
from sinks.domain.shown import shown
from sinks.domain.withdrawal_state import Facts, Fill, Tombstone, Withdrawal

PATH = "data.fill"

_CONTENT = (
    "pg_withdrawal_id",
    "sequence",
    "amount_minor",
    "fee_recognized_minor",
    "settled_at",
    "auto_confirm_at",
    "balance_transaction_id",
)
"""What two observations of one chunk must agree on; whether it was reversed is no part of it."""

_decode = msgspec.json.Decoder(FillBody).decode


def read_fill(event: WithdrawalEvent) -> Fill | Refusal:
    """The chunk of a `withdrawal.filled`, or what it lacks."""
    try:
        body = _decode(event.data.fill)
    except msgspec.ValidationError as failure:
        return Refusal("fill_shape", shape_detail(failure, PATH))
    fault = key_fault("leg_ref", body.leg_ref)
    if fault is not None:
        return Refusal("fill_shape", f"{PATH}.{fault}")
    settled_at = _moment("settled_at", body.settled_at)
    if isinstance(settled_at, Refusal):
        return settled_at
    auto_confirm_at = _moment("auto_confirm_at", body.auto_confirm_at)
    if isinstance(auto_confirm_at, Refusal):
        return auto_confirm_at
    return Fill(
        body.leg_ref,
        event.data.object.id,
        body.amount_minor,
        body.sequence,
        body.fee_recognized_minor,
        settled_at,
        auto_confirm_at,
        body.balance_transaction_id,
    )


def _moment(name: str, text: str | None) -> datetime | Refusal | None:
    if text is None:
        return None
    return instant(text) or Refusal("fill_shape", f"{PATH}.{name} is {shown(text)}")


def keep_fill(fill: Fill, facts: Facts) -> Fill | Refusal | None:
    """The row to be kept of a chunk, marked where its reversal came first; None when the same chunk is known.

    A chunk that contradicts what is known of it, or the reversal that names it, is refused.
    """
    stored, tombstone = facts.fill(fill.leg_ref), facts.tombstone(fill.leg_ref)
    if stored is not None:
        differing = [name for name in _CONTENT if getattr(stored, name) != getattr(fill, name)]
        if differing:
            return _collision(fill.leg_ref, f"was seen with another {', '.join(differing)}")
    if tombstone is not None:
        differing = contradictions(fill, tombstone)
        if differing:
            return _collision(fill.leg_ref, f"was reversed with another {', '.join(differing)}")
    if stored is not None:
        return None
    return fill if tombstone is None else replace(fill, reversed_at=tombstone.reversed_at)


def contradictions(fill: Fill, tombstone: Tombstone) -> list[str]:
    """In what a chunk and its reversal, whichever came first, do not fit together; empty when they do."""
    differing = []
    if fill.pg_withdrawal_id != tombstone.pg_withdrawal_id:
        differing.append("pg_withdrawal_id")
    if fill.amount_minor != tombstone.amount_minor:
        differing.append("amount_minor")
    # A fill may come without its transaction, which says nothing against any.
    if fill.balance_transaction_id not in (None, tombstone.reverses_balance_transaction_id):
        differing.append("balance_transaction_id")
    return differing


def fee_differs(fill: Fill, filled_after_minor: int | None, row: Withdrawal) -> bool:
    """Whether the chunk's fee is not what the running total gives; False where it cannot be told.

    Args:
        filled_after_minor: the order's total of the event that brought the chunk (satang).
        row: the withdrawal after that event.
    """
    sent_minor, fee_total_minor = fill.fee_recognized_minor, row.fee_total_minor
    if sent_minor is None or fee_total_minor is None or filled_after_minor is None or row.amount_total_minor <= 0:
        return False
    return sent_minor != chunk_fee_minor(fee_total_minor, row.amount_total_minor, filled_after_minor, fill.amount_minor)


def _collision(leg_ref: str, detail: str) -> Refusal:
    return Refusal("fill_collision", f"chunk {shown(leg_ref)} {detail}")
