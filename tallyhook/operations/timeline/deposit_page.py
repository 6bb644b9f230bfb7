"""The page of a deposit: where it stands, what was received and credited, and what the customer can still do."""

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from schemas.events import DEPOSIT_KIND
from tallyhook.operations.timeline.amounts import exact, short
from tallyhook.operations.timeline.catalogue import Catalogue
from tallyhook.operations.timeline.clock_words import ClockWords
from tallyhook.operations.timeline.newest_event import rejection_message, review_messages
from tallyhook.operations.timeline.page import Line, Page
from tallyhook.operations.timeline.records import Deposit, DepositRow, EntryRow, FlagRow

ENDED_BEFORE_MONEY = ("expired", "canceled")
CHECKING = ("open", "slip_received")


def deposit_page(found: Deposit, words: Catalogue, place: ZoneInfo) -> Page:
    """The page; times are in `place`."""
    row = found.row
    happened: list[tuple[datetime, EntryRow | FlagRow]] = [
        *((entry.created_at, entry) for entry in found.entries),
        *((flag.slip_received_at, flag) for flag in found.flags),
    ]
    happened.sort(key=lambda one: one[0])
    until = _late_slip_until(row)
    clock = ClockWords(place, words, [at for at, _ in happened] + ([] if until is None else [until]))
    lines = [
        Line("title", words.text("deposit.title", name=f"{row.our_order_id} ({row.pg_deposit_id})")),
        Line("status", _status(row, words)),
        *_messages(found, words),
    ]
    received, ordered = row.amount_received_minor, row.ordered_amount_minor
    if received is not None and ordered is not None:
        amounts = {"received": exact(received), "ordered": exact(ordered)}
        lines.append(Line("received", words.text("deposit.received", **amounts)))
    elif ordered is not None:
        lines.append(Line("received", words.text("deposit.ordered", ordered=exact(ordered))))
    lines += [_happened(at, what, words, clock) for at, what in happened]
    if until is not None:
        lines.append(Line("late_slip", words.text("deposit.late_slip", until=clock.say(until)), at=until))
    if row.status in CHECKING:
        lines.append(Line("note", words.text("deposit.bank_first")))
    if found.waiting.parked:
        lines.append(Line("note", words.text("unfinished.waiting", count=found.waiting.parked)))
    lines.append(Line("zone", clock.zone_line()))
    return Page(row.pg_deposit_id, DEPOSIT_KIND, row.status, words.language, str(place), tuple(lines))


def _happened(at: datetime, what: EntryRow | FlagRow, words: Catalogue, clock: ClockWords) -> Line:
    time, amount = clock.say(at), exact(what.amount_minor)
    if isinstance(what, FlagRow):
        text = words.text("deposit.overpaid", time=time, amount=amount)
        return Line("overpaid", text, at, amount_minor=what.amount_minor)
    if what.amount_minor > 0:
        text = words.text("deposit.credited", time=time, amount=amount)
        return Line("credit", text, at, amount_minor=what.amount_minor)
    return Line("debit", words.text("deposit.debited", time=time, amount=amount), at, amount_minor=what.amount_minor)


def _late_slip_until(row: DepositRow) -> datetime | None:
    """Until when a slip is still accepted; the rule is that of the effect show_late_slip."""
    late = row.status in ENDED_BEFORE_MONEY and row.is_terminal is False
    return row.late_slip_accepted_until if late else None


def _status(row: DepositRow, words: Catalogue) -> str:
    if _late_slip_until(row) is not None:
        return words.text(f"deposit.status_with_late_slip.{row.status}")
    received = "" if row.amount_received_minor is None else short(row.amount_received_minor)
    return words.one_of("deposit.status", row.status, "other", status=row.status, received=received)


def _messages(found: Deposit, words: Catalogue) -> Iterator[Line]:
    """The gateway's own words for the end user, as they are."""
    told: tuple[str, ...] = ()
    if found.row.status == "under_review":
        told = review_messages(found.newest, words.language)
    elif found.row.status == "rejected":
        message = rejection_message(found.newest, words.language)
        told = () if message is None else (message,)
    for message in told:
        yield Line("note", words.text("deposit.message", message=message))
