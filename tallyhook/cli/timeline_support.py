"""The support part of `tallyhook timeline` for a terminal: rows, deliveries, effects and the check of fees."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from tallyhook.cli import output
from tallyhook.cli.escaping import escaped
from tallyhook.operations.timeline.amounts import exact
from tallyhook.operations.timeline.catalogue import Catalogue
from tallyhook.operations.timeline.clock_words import in_zone
from tallyhook.operations.timeline.records import Deposit, Transaction, Withdrawal
from tallyhook.operations.timeline.support import SupportView


def print_support(view: SupportView, words: Catalogue, place: ZoneInfo) -> None:
    """Everything of one object; amounts of rows are satang, as they are stored."""
    _print_rows(view, words, place)
    _print_deliveries(view, words, place)
    _print_effects(view, words)
    if view.fees is not None:
        print()
        for one in view.fees.differences:
            amounts = {"sent": exact(one.sent_minor), "computed": exact(one.computed_minor)}
            named = {"number": one.number, "leg_ref": one.leg_ref, "event_id": one.event_id}
            print(escaped(words.text("support.fee_differs", **amounts, **named)))
        total = view.fees.agree + view.fees.unchecked + len(view.fees.differences)
        counts = {"agree": view.fees.agree, "total": total, "unchecked": view.fees.unchecked}
        print(words.text("support.fees_agree", **counts))


def _print_rows(view: SupportView, words: Catalogue, place: ZoneInfo) -> None:
    record = view.record
    if isinstance(record, Withdrawal | Deposit | Transaction):
        now = [(name, _cell(value, place)) for name, value in asdict(record.row).items() if value is not None]
        _table(words.text("support.now"), ("", ""), now)
    if isinstance(record, Withdrawal):
        _print_list("fills", [asdict(fill) for fill in record.fills], words, place)
        _print_list("reversals", [asdict(reversal) for reversal in record.reversals], words, place)
    if isinstance(record, Deposit):
        _print_list("entries", [asdict(entry) for entry in record.entries], words, place)
        _print_list("flags", [asdict(flag) for flag in record.flags], words, place)
    _print_list("transactions", [asdict(movement) for movement in view.transactions], words, place)


def _print_list(name: str, rows: Sequence[dict[str, Any]], words: Catalogue, place: ZoneInfo) -> None:
    if rows:
        cells = [[_cell(value, place) for value in row.values()] for row in rows]
        _table(words.text(f"support.{name}"), tuple(rows[0]), cells)


def _print_deliveries(view: SupportView, words: Catalogue, place: ZoneInfo) -> None:
    columns = [words.text(f"support.column.{name}") for name in ("arrival", "at", "place")]
    columns += ["event", "type", "version", "sequence", "origin"]
    columns += [words.text(f"support.column.{name}") for name in ("verdict", "reason", "why")]
    rows = []
    for event in view.events:
        numbers = (event.version, event.sequence)
        named = (escaped(event.event_id), escaped(event.event_type), *numbers, event.origin)
        for place_in_event, one in enumerate(event.deliveries):
            arrival = event.arrival if place_in_event == 0 else ""
            why = escaped(f"{one.why} {one.next_step}".strip())
            rows.append((arrival, in_zone(one.at, place), escaped(one.source), *named, one.verdict, one.reason, why))
    _table(words.text("support.deliveries"), columns, rows)
    if view.events_total > len(view.events):
        print(words.text("support.events_cut", total=view.events_total))
    if view.deliveries_total > len(rows):
        print(words.text("support.deliveries_cut", shown=len(rows), total=view.deliveries_total))
    ordered = view.by_version()
    if ordered:
        versions = ", ".join(f"v{event.version} #{event.arrival}" for event in ordered)
        print(words.text("support.by_version", versions=versions))


def _print_effects(view: SupportView, words: Catalogue) -> None:
    if not view.effects:
        print()
        print(words.text("support.no_effects"))
        return
    columns = [words.text(f"support.column.{name}") for name in ("effect", "key", "cause")]
    rows = [
        (
            one.effect.topic,
            escaped(one.effect.dedupe_key),
            escaped(one.causation_id),
            one.version,
            f"{one.effect.partition}/{one.effect.seq}",
            words.text("support.sent" if one.effect.sent else "support.not_sent"),
        )
        for one in view.effects
    ]
    _table(words.text("support.effects"), (*columns, "version", "outbox", ""), rows)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table with a free line before it."""
    print()
    output.print_table(title, columns, rows)


def _cell(value: object, place: ZoneInfo) -> str:
    if isinstance(value, datetime):
        return in_zone(value, place)
    return "" if value is None else escaped(str(value))
