"""`tallyhook parked`: events that wait, for how long, and for what."""

from dataclasses import asdict
from enum import StrEnum

import typer

from schemas.verdicts import ParkedReason
from tallyhook.cli.escaping import escaped
from tallyhook.cli.explain import Language
from tallyhook.cli.output import JsonOption, console, print_json, print_table
from tallyhook.clock import SystemClock
from tallyhook.operations.parked import OVERDUE_HOURS, ParkedEvent, find
from tallyhook.postgres import connect
from tallyhook.settings import load


class Reason(StrEnum):
    """What an event can wait for."""

    CORRELATION = "correlation"
    SNAPSHOT = "snapshot"


def parked(
    older_than: float = typer.Option(0.0, min=0, max=100_000, help="Only those that wait for more hours."),
    reason: Reason | None = typer.Option(None, help="Only those that wait for this."),
    limit: int = typer.Option(100, min=1, max=10_000, help="Most events."),
    lang: Language = typer.Option(Language.EN, help="Language of the sentences."),
    as_json: JsonOption = False,
) -> None:
    """List events that cannot be applied yet, oldest first; a ! marks those that wait for more than 92 hours.

    Example: tallyhook parked --older-than 24

    Example: tallyhook parked --reason correlation --json
    """
    settings = load()
    waits_for: ParkedReason | None = None
    if reason is not None:
        waits_for = "correlation" if reason is Reason.CORRELATION else "snapshot"
    with connect(settings.database, "parked") as connection:
        found = find(
            connection,
            settings.installation.schema_name,
            now=SystemClock().now(),
            older_than_hours=older_than,
            reason=waits_for,
            limit=limit,
        )
    if as_json:
        print_json(
            {"total": found.total, "overdue": found.overdue, "events": [_object(event) for event in found.events]}
        )
        return
    print_table(
        "",
        ("", "received (UTC)", "waits", "event", "type", "object", "version", "for"),
        [_line(event, lang) for event in found.events],
    )
    console.print(
        f"{len(found.events)} of {found.total}; {found.overdue} wait for more than {OVERDUE_HOURS:g} h"
        if found.total
        else "nothing waits" + (" that fits" if older_than or reason else ""),
        markup=False,
    )
    for words in dict.fromkeys(event.explanation for event in found.events):
        console.print(f"next step: {words.next_step}", markup=False, soft_wrap=True)


def _object(event: ParkedEvent) -> dict[str, object]:
    words = event.explanation
    return asdict(event) | {"waits_for_en": words.en, "waits_for_th": words.th, "next_step": words.next_step}


def _line(event: ParkedEvent, lang: Language) -> tuple[object, ...]:
    words = event.explanation
    return (
        "!" if event.overdue else "",
        f"{event.received_at:%Y-%m-%d %H:%M:%S}",
        f"{event.age_hours:.1f} h",
        escaped(event.event_id),
        escaped(event.event_type),
        escaped(event.object_id),
        event.version,
        words.th if lang is Language.TH else words.en,
    )
