"""The page of a withdrawal: received so far of the total, a line a chunk, what is awaited and what came back.

Source of words and layout: the gateway's page on partial fills, section "The right UI". All totals are the row's own:
chunks are listed, never added up, and a match is never counted as money.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from schemas.events import WITHDRAWAL_KIND
from tallyhook.operations.timeline.amounts import exact, short
from tallyhook.operations.timeline.catalogue import Catalogue
from tallyhook.operations.timeline.clock_words import ClockWords
from tallyhook.operations.timeline.newest_event import reserved_minor
from tallyhook.operations.timeline.page import Line, Page
from tallyhook.operations.timeline.records import FillRow, ReversalRow, Withdrawal, WithdrawalRow

AWAITED = ("open", "partially_filled")
"""Statuses in which money is still to come."""

REFUNDED = ("expired", "canceled")
WITHOUT_MONEY = ("pending_approval", "rejected")
"""Statuses whose page speaks of received money only where there is some."""

_FAR = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A chunk with its number, or a reversal alone where its chunk is not known."""

    at: datetime | None
    number: int | None
    fill: FillRow | None = None
    reversal: ReversalRow | None = None


def withdrawal_page(found: Withdrawal, words: Catalogue, place: ZoneInfo) -> Page:
    """The page; times are in `place`."""
    row = found.row
    chunks = _chunks(found)
    clock = ClockWords(place, words, (chunk.at for chunk in chunks if chunk.at is not None))
    name = f"{row.our_ref} ({row.pg_withdrawal_id})" if row.our_ref else row.pg_withdrawal_id
    lines = [
        Line("title", words.text("withdrawal.title", name=name)),
        Line("status", _status(row, words)),
    ]
    if row.status not in WITHOUT_MONEY or row.filled_minor or chunks:
        amounts = {"filled": exact(row.filled_minor), "total": exact(row.amount_total_minor)}
        lines.append(Line("received", words.text("withdrawal.received", **amounts)))
    lines += [_chunk_line(chunk, words, clock) for chunk in chunks]
    lines += _awaited(found, words)
    lines += _returned(row, words)
    lines += _notes(found, words)
    lines.append(Line("zone", clock.zone_line()))
    return Page(row.pg_withdrawal_id, WITHDRAWAL_KIND, row.status, words.language, str(place), tuple(lines))


def in_true_order(fills: tuple[FillRow, ...]) -> list[FillRow]:
    """Chunks as they happened, whatever order they arrived in; those without a moment last, by their sequence."""

    def key(fill: FillRow) -> tuple[bool, datetime, bool, int, str]:
        moment = _FAR if fill.settled_at is None else fill.settled_at
        return fill.settled_at is None, moment, fill.sequence is None, fill.sequence or 0, fill.leg_ref

    return sorted(fills, key=key)


def _chunks(found: Withdrawal) -> list[_Chunk]:
    numbers = {fill.leg_ref: number for number, fill in enumerate(in_true_order(found.fills), start=1)}
    chunks = [_Chunk(fill.settled_at, numbers[fill.leg_ref], fill=fill) for fill in found.fills]
    chunks += [_Chunk(one.reversed_at, numbers.get(one.leg_ref), reversal=one) for one in found.reversals]

    def key(chunk: _Chunk) -> tuple[bool, datetime, bool, int]:
        moment = _FAR if chunk.at is None else chunk.at
        return chunk.at is None, moment, chunk.fill is None, chunk.number or 0

    return sorted(chunks, key=key)


def _chunk_line(chunk: _Chunk, words: Catalogue, clock: ClockWords) -> Line:
    time = clock.say(chunk.at)
    if chunk.reversal is not None:
        amount = chunk.reversal.amount_minor
        form = "withdrawal.reversal" if chunk.number is not None else "withdrawal.reversal_alone"
        text = words.text(form, time=time, amount=exact(amount), number=chunk.number)
        return Line("reversal", text, chunk.at, chunk.number, -amount)
    fill = chunk.fill
    assert fill is not None  # noqa: S101  a chunk is made of one or the other
    form = "withdrawal.fill" if fill.reversed_at is None else "withdrawal.fill_reversed"
    text = words.text(form, time=time, amount=exact(fill.amount_minor), number=chunk.number)
    return Line("fill", text, chunk.at, chunk.number, fill.amount_minor)


def _status(row: WithdrawalRow, words: Catalogue) -> str:
    amounts = {"filled": short(row.filled_minor), "total": short(row.amount_total_minor)}
    if row.status == "expired" and row.refunded_minor is None:
        return words.text("withdrawal.status_of.expired_unknown")
    if row.status == "settled" and row.remaining_minor != 0:
        return words.text("withdrawal.status_of.settled_with_rest", **amounts)
    left = short(row.refunded_minor or 0)
    return words.one_of("withdrawal.status", row.status, "other", left=left, status=row.status, **amounts)


def _awaited(found: Withdrawal, words: Catalogue) -> Iterator[Line]:
    """What somebody transfers just now and what is still to come; the reserve is not money, so it changes no sum."""
    row = found.row
    to_come = (row.settled_splits or 0) - found.fills_total
    if to_come > 0:
        yield Line("waiting", words.text("withdrawal.fills_to_come", count=to_come))
    if row.status not in AWAITED:
        return
    reserved = reserved_minor(found.newest)
    if reserved is not None:
        yield Line("matched", words.text("withdrawal.matched", amount=short(reserved)), amount_minor=reserved)
    left = row.amount_total_minor - row.filled_minor
    if left > 0:
        yield Line("waiting", words.text("withdrawal.waiting", left=exact(left)), amount_minor=left)


def _returned(row: WithdrawalRow, words: Catalogue) -> Iterator[Line]:
    """What went back to the user: the principal that nobody filled, and the part of the fee that was not used."""
    if row.status in REFUNDED and row.refund_enqueued_at is not None and row.refunded_minor is not None:
        refunded = row.refunded_minor
        if row.fee_total_minor is None or row.fee_recognized_minor is None:
            text = words.text("withdrawal.returned_principal", refunded=exact(refunded))
            yield Line("returned", text, amount_minor=refunded)
        else:
            fee = row.fee_total_minor - row.fee_recognized_minor
            amounts = {"release": exact(refunded + fee), "refunded": exact(refunded), "fee": exact(fee)}
            yield Line("returned", words.text("withdrawal.returned", **amounts), amount_minor=refunded + fee)
    locked = row.total_locked_minor
    if row.status == "rejected" and row.user_lock_released_at is not None and locked is not None:
        yield Line("returned", words.text("withdrawal.released", locked=exact(locked)), amount_minor=locked)


def _notes(found: Withdrawal, words: Catalogue) -> Iterator[Line]:
    row = found.row
    if found.reversals or any(fill.reversed_at is not None for fill in found.fills):
        yield Line("note", words.text("withdrawal.compensating"))
    if row.replacement_withdrawal_id is not None:
        yield Line("note", words.text("withdrawal.replacement", id=row.replacement_withdrawal_id))
    if row.status in AWAITED:
        yield Line("note", words.text("withdrawal.bank_first"))
    shown, total = len(found.fills) + len(found.reversals), found.fills_total + found.reversals_total
    if total > shown:
        yield Line("note", words.text("unfinished.cut", shown=shown, total=total))
    if found.waiting.parked:
        yield Line("note", words.text("unfinished.waiting", count=found.waiting.parked))
