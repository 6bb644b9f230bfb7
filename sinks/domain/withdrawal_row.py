"""The row of a withdrawal: what an event's snapshot, which may be sparse, makes of it.

Totals are overwritten by higher versions only, and never added up. Members that are set once are taken by the first
event that has them, a late one too. What an event does not carry keeps its stored value.
"""

from dataclasses import replace
from typing import TypeVar

import msgspec

from schemas.events import WithdrawalObject
from sinks.domain.withdrawal_state import Withdrawal

Known = TypeVar("Known")
Other = TypeVar("Other")


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    """The two members of a merchant's metadata that may name the withdrawal on its side."""

    ticket: msgspec.Raw = msgspec.Raw(b"null")
    payout_id: msgspec.Raw = msgspec.Raw(b"null")


_decode_metadata = msgspec.json.Decoder(_Metadata).decode
_decode_text = msgspec.json.Decoder(str).decode


def our_ref_of(order: WithdrawalObject) -> str | None:
    """The merchant's own reference: merchant_reference, else metadata.ticket, else metadata.payout_id.

    Only a text that is not empty counts; metadata may be anything.
    """
    if order.merchant_reference:
        return order.merchant_reference
    if not bytes(order.metadata).startswith(b"{"):
        return None
    metadata = _decode_metadata(order.metadata)
    return _text(metadata.ticket) or _text(metadata.payout_id)


def _text(raw: msgspec.Raw) -> str | None:
    return (_decode_text(raw) or None) if bytes(raw).startswith(b'"') else None


def build(order: WithdrawalObject, our_ref: str | None) -> Withdrawal | None:
    """The first row of a withdrawal; None where the snapshot is too sparse for one."""
    if order.amount_total_minor is None or order.remaining_minor is None:
        return None
    return Withdrawal(
        pg_withdrawal_id=order.id,
        pg_version=order.version,
        status=order.status,
        amount_total_minor=order.amount_total_minor,
        remaining_minor=order.remaining_minor,
        filled_minor=0 if order.filled_minor is None else order.filled_minor,
        fee_total_minor=order.fee_total_minor,
        total_locked_minor=order.total_locked_minor,
        refunded_minor=order.refunded_minor,
        fee_recognized_minor=order.fee_recognized_minor,
        settled_splits=order.settled_splits,
        max_splits=order.max_splits,
        our_ref=our_ref,
    )


def advance(row: Withdrawal, order: WithdrawalObject, our_ref: str | None) -> Withdrawal:
    """The row after a snapshot of a higher version."""
    return Withdrawal(
        pg_withdrawal_id=row.pg_withdrawal_id,
        pg_version=order.version,
        status=order.status,
        amount_total_minor=row.amount_total_minor,
        remaining_minor=_first(order.remaining_minor, row.remaining_minor),
        filled_minor=_first(order.filled_minor, row.filled_minor),
        fee_total_minor=_first(row.fee_total_minor, order.fee_total_minor),
        total_locked_minor=_first(row.total_locked_minor, order.total_locked_minor),
        refunded_minor=_first(order.refunded_minor, row.refunded_minor),
        fee_recognized_minor=_first(order.fee_recognized_minor, row.fee_recognized_minor),
        settled_splits=_first(order.settled_splits, row.settled_splits),
        max_splits=_first(row.max_splits, order.max_splits),
        our_ref=_first(row.our_ref, our_ref),
        replacement_withdrawal_id=row.replacement_withdrawal_id,
        closed=row.closed,
        close_enqueued=row.close_enqueued,
        refund_enqueued=row.refund_enqueued,
        lock_released=row.lock_released,
    )


def complete(row: Withdrawal, order: WithdrawalObject, our_ref: str | None) -> Withdrawal:
    """The row after a late snapshot, which may fill in what is set once; the very same row where it does not."""
    fee_total_minor = _first(row.fee_total_minor, order.fee_total_minor)
    total_locked_minor = _first(row.total_locked_minor, order.total_locked_minor)
    max_splits = _first(row.max_splits, order.max_splits)
    our_ref = _first(row.our_ref, our_ref)
    if (fee_total_minor, total_locked_minor, max_splits, our_ref) == (
        row.fee_total_minor,
        row.total_locked_minor,
        row.max_splits,
        row.our_ref,
    ):
        return row
    return replace(
        row,
        fee_total_minor=fee_total_minor,
        total_locked_minor=total_locked_minor,
        max_splits=max_splits,
        our_ref=our_ref,
    )


def reopen(row: Withdrawal, replacement_withdrawal_id: str | None) -> Withdrawal:
    """The row after one of its chunks was taken back: open again, with the withdrawal that replaces it, where known."""
    replacement = _first(replacement_withdrawal_id, row.replacement_withdrawal_id)
    if not row.closed and replacement == row.replacement_withdrawal_id:
        return row
    return replace(row, closed=False, replacement_withdrawal_id=replacement)


def _first(known: Known | None, other: Other) -> Known | Other:
    return other if known is None else known
