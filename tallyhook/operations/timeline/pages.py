"""Which page an object has: by its kind, and an honest one where events came and no row can be made of them yet."""

from zoneinfo import ZoneInfo

from schemas.events import BALANCE_TRANSACTION_KIND, DEPOSIT_KIND, WITHDRAWAL_KIND
from tallyhook.operations.timeline.amounts import exact
from tallyhook.operations.timeline.catalogue import Catalogue
from tallyhook.operations.timeline.clock_words import ClockWords
from tallyhook.operations.timeline.deposit_page import deposit_page
from tallyhook.operations.timeline.page import Line, Page
from tallyhook.operations.timeline.records import Deposit, Record, Transaction, Unfinished, Withdrawal
from tallyhook.operations.timeline.withdrawal_page import withdrawal_page

_SIGNS = {"credit": "+", "debit": "-"}


def page_of(record: Record, words: Catalogue, place: ZoneInfo) -> Page:
    """What an end user sees of the object, in the catalogue's language, with times in `place`."""
    match record:
        case Withdrawal():
            return withdrawal_page(record, words, place)
        case Deposit():
            return deposit_page(record, words, place)
        case Transaction():
            return _transaction_page(record, words, place)
        case Unfinished():
            return _unfinished_page(record, words, place)


def _transaction_page(found: Transaction, words: Catalogue, place: ZoneInfo) -> Page:
    """One line: a movement of the wallet. A move between buckets is neither more nor less money, so it has no sign."""
    row = found.row
    clock = ClockWords(place, words, [row.created_at])
    signed = f"{_SIGNS.get(row.direction, '')}{exact(row.amount_minor)}"
    time = clock.say(row.created_at)
    if row.bucket_from is not None and row.bucket_to is not None:
        buckets = {"from_bucket": row.bucket_from, "to_bucket": row.bucket_to}
        text = words.text("transaction.line_moved", time=time, amount=signed, type=row.type, **buckets)
    else:
        text = words.text("transaction.line", time=time, amount=signed, type=row.type)
    lines = [
        Line("title", words.text("transaction.title", name=row.btxn_id)),
        Line("movement", text, row.created_at, amount_minor=row.amount_minor),
    ]
    if row.source_id is not None:
        lines.append(Line("note", words.text("transaction.source", source=row.source_id)))
    lines.append(Line("zone", clock.zone_line()))
    return Page(row.btxn_id, BALANCE_TRANSACTION_KIND, None, words.language, str(place), tuple(lines))


def _unfinished_page(found: Unfinished, words: Catalogue, place: ZoneInfo) -> Page:
    """There is no row yet: why, said as it is."""
    waiting = found.waiting
    if found.announced:
        name = "announced"
    elif waiting.parked and WITHDRAWAL_KIND in waiting.kinds:
        name = "withdrawal"
    elif waiting.parked and DEPOSIT_KIND in waiting.kinds:
        name = "deposit"
    else:
        name = "set_aside" if waiting.set_aside else "other"
    lines = (
        Line("title", words.text("unfinished.title", name=found.object_id)),
        Line("status", words.text(f"unfinished.{name}")),
        Line("zone", ClockWords(place, words, ()).zone_line()),
    )
    kind = waiting.kinds[0] if waiting.kinds else ""
    return Page(found.object_id, kind, None, words.language, str(place), lines)
