"""The cross-check of chunk fees: what was sent beside what the running total gives. Nothing is corrected by it."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from sinks.domain.chunk_fee import chunk_fee_minor
from tallyhook.operations.timeline.records import Withdrawal
from tallyhook.operations.timeline.withdrawal_page import in_true_order


@dataclass(frozen=True, slots=True)
class FeeDifference:
    """A chunk whose fee is another one than the rule gives (satang)."""

    leg_ref: str
    number: int
    event_id: str
    sent_minor: int
    computed_minor: int


@dataclass(frozen=True, slots=True)
class ChunkFees:
    """What the check found.

    Args:
        agree: chunks whose fee is the computed one.
        unchecked: chunks without a fee, or whose event the inbox no longer has.
    """

    differences: tuple[FeeDifference, ...]
    agree: int
    unchecked: int


class _Fill(msgspec.Struct, gc=False):
    leg_ref: str


class _Object(msgspec.Struct, gc=False):
    filled_minor: int | None = None


class _Data(msgspec.Struct, gc=False):
    object: _Object
    fill: _Fill


class _Event(msgspec.Struct, gc=False):
    data: _Data


_read = msgspec.json.Decoder(_Event).decode


def check_fees(found: Withdrawal, filled_events: Mapping[str, str]) -> ChunkFees:
    """Compares each chunk's fee with what it adds to the running one.

    Args:
        filled_events: bodies of the order's `withdrawal.filled` events by event id, in order of arrival.
    """
    filled_after: dict[str, tuple[str, int]] = {}
    for event_id, body in filled_events.items():
        told = _filled_after(body)
        if told is not None:
            # The first event of a chunk is the one that was kept.
            filled_after.setdefault(told[0], (event_id, told[1]))
    row, differences, agree, unchecked = found.row, [], 0, 0
    for number, fill in enumerate(in_true_order(found.fills), start=1):
        event_id, after_minor = filled_after.get(fill.leg_ref, ("", None))
        sent_minor, total_minor = fill.fee_recognized_minor, row.fee_total_minor
        if after_minor is None or sent_minor is None or total_minor is None or row.amount_total_minor <= 0:
            unchecked += 1
            continue
        computed = chunk_fee_minor(total_minor, row.amount_total_minor, after_minor, fill.amount_minor)
        if computed == sent_minor:
            agree += 1
        else:
            differences.append(FeeDifference(fill.leg_ref, number, event_id, sent_minor, computed))
    return ChunkFees(tuple(differences), agree, unchecked)


def _filled_after(body: str) -> tuple[str, int] | None:
    """The chunk of an event and the order's filled total with it; None where either is not told."""
    try:
        data = _read(body).data
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return None if data.object.filled_minor is None else (data.fill.leg_ref, data.object.filled_minor)
