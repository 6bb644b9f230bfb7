"""`tallyhook quarantine`: what was set aside, and closing it by hand."""

import base64
import sys
from collections.abc import Iterable
from dataclasses import asdict
from enum import StrEnum
from typing import Any

import typer

from tallyhook.cli.escaping import escaped, escaped_bytes
from tallyhook.cli.explain import Language
from tallyhook.cli.output import JsonOption, console, errors, print_json, print_table
from tallyhook.cli.quarantine_options import (
    ReasonOption,
    SinceOption,
    StageOption,
    TypeOption,
    UntilOption,
    known_reason,
    moment,
)
from tallyhook.clock import SystemClock
from tallyhook.errors import UsageError
from tallyhook.operations import quarantine as operation
from tallyhook.operations.quarantine import Closed, Quarantine, QuarantinedEvent, Stored, Wanted
from tallyhook.postgres import connect
from tallyhook.settings import load

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Look at events that were set aside, and close them by hand.\n\nExample: tallyhook quarantine list",
)

LINES_MAX = 1000
"""Of more rows than this, only those that were closed before get a line of their own; `--json` has all."""
DIGITS_MAX = 19
SHOWN_BYTES = 16_384
"""So much of the bytes is shown escaped; `--raw` gives all."""


class State(StrEnum):
    """States of a row."""

    OPEN = "open"
    REDRIVEN = "redriven"
    DISCARDED = "discarded"
    ANY = "any"


@app.command("list")
def list_(
    reason: ReasonOption = None,
    stage: StageOption = None,
    event_type: TypeOption = None,
    state: State = typer.Option(State.OPEN, help="Only rows in this state."),
    since: SinceOption = None,
    until: UntilOption = None,
    after: int = typer.Option(0, min=0, max=operation.NEWEST, help="Only rows with a higher id: the next page."),
    limit: int = typer.Option(100, min=1, max=10_000, help="Most rows."),
    as_json: JsonOption = False,
) -> None:
    """List events that were set aside and wait for somebody, oldest first. Times are UTC.

    Example: tallyhook quarantine list --reason money_rule --since 3d

    Example: tallyhook quarantine list --state any --json
    """
    settings, now = load(), SystemClock().now()
    wanted = Wanted(
        reason=known_reason(reason),
        stage=stage.value if stage else None,
        event_type=event_type,
        states=None if state is State.ANY else (_state(state),),
        since=moment("--since", since, now),
        until=moment("--until", until, now),
        after=after,
    )
    with connect(settings.database, "quarantine") as connection:
        table = Quarantine(connection, settings.installation.schema_name)
        total, _ = table.measure(wanted)
        rows = table.find(wanted, limit)
    if as_json:
        print_json({"total": total, "events": [as_object(row) for row in rows]})
        return
    print_table(
        "",
        ("id", "set aside (UTC)", "stage", "reason", "event", "type", "object", "tries", "state", "detail"),
        [_line(row) for row in rows],
    )
    if total > len(rows):
        console.print(f"{len(rows)} of {total}; the next ones: --after {rows[-1].id}", markup=False)
    elif not rows:
        console.print("nothing is set aside" if state is State.OPEN else "no row fits")


@app.command("show")
def show(
    row_id: int = typer.Argument(
        metavar="ID", min=1, max=operation.NEWEST, help="The row's id, from `quarantine list`."
    ),
    raw: bool = typer.Option(False, "--raw", help="Write the bytes as they were kept, and nothing else."),
    lang: Language = typer.Option(Language.EN, help="Language of the reason's sentence."),
    as_json: JsonOption = False,
) -> None:
    """Show one row: reason and next step, headers, and the bytes with control characters escaped.

    Exit code 1 if there is no such row.

    Example: tallyhook quarantine show 7 --lang th

    Example: tallyhook quarantine show 7 --raw > event.json
    """
    if raw and as_json:
        raise UsageError("--raw and --json exclude each other; the JSON has the bytes as raw_base64")
    settings = load()
    with connect(settings.database, "quarantine") as connection:
        found = Quarantine(connection, settings.installation.schema_name).get(row_id)
    if found is None:
        errors.print(f"tallyhook: there is no quarantined event {row_id}; see `tallyhook quarantine list --state any`")
        raise typer.Exit(1)
    if raw:
        sys.stdout.buffer.write(found.raw)
        sys.stdout.buffer.flush()
    elif as_json:
        print_json(
            as_object(found.event)
            | {
                "headers": found.headers,
                "raw_text": escaped_bytes(found.raw, lines=True),
                "raw_base64": base64.b64encode(found.raw).decode(),
            }
        )
    else:
        _print_row(found, lang)


@app.command("resolve")
def resolve(
    ids: list[int] | None = typer.Argument(
        None, metavar="ID...", min=1, max=operation.NEWEST, help="Rows, from `quarantine list`."
    ),
    ids_from: typer.FileText | None = typer.Option(
        None, "--ids-from", help="Also the rows whose ids stand in this file, one a line; - for standard input."
    ),
    discard: bool = typer.Option(False, "--discard", help="It is to have no effect."),
    accept: bool = typer.Option(False, "--accept", help="Somebody has done by hand what it asked for."),
    reason: str = typer.Option(..., help="Why; kept with the row."),
    actor: str = typer.Option(..., help="Who decides this; kept with the row."),
    as_json: JsonOption = False,
) -> None:
    """Close rows by hand: all that are named, or none. Bytes and headers stay; a closed row is not closed again.

    Exit code 1, and nothing changed, when a row does not exist.

    Example: tallyhook quarantine resolve 7 8 --discard --reason "test event, see ticket 12" --actor nok

    Example: tallyhook quarantine resolve --ids-from ids.txt --accept --reason "paid by hand, ticket 13" --actor nok
    """
    if discard == accept:
        raise UsageError("give either --discard or --accept")
    wanted = [*(ids or ()), *_ids_of(ids_from)]
    if not wanted:
        raise UsageError("name at least one row, or give --ids-from")
    settings = load()
    with connect(settings.database, "quarantine") as connection:
        table = Quarantine(connection, settings.installation.schema_name)
        closed = table.resolve(wanted, "discard" if discard else "accept", reason, actor)
    if as_json:
        print_json([asdict(row) for row in closed])
        return
    is_long = len(closed) > LINES_MAX
    for row in closed:
        if not (is_long and row.changed):
            console.print(_closed_line(row), markup=False, soft_wrap=True)
    if is_long:
        console.print(f"closed: {sum(row.changed for row in closed):,} of {len(closed):,} rows", markup=False)


def _ids_of(lines: Iterable[str] | None) -> list[int]:
    """The ids of a file; raises UsageError for a line that is none, or for too many."""
    found: list[int] = []
    for number, line in enumerate(lines or (), 1):
        text = line.strip()
        if not text:
            continue
        if not (text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX and 0 < int(text) <= operation.NEWEST):
            raise UsageError(f"--ids-from: line {number} is no id of a row")
        found.append(int(text))
        if len(found) > operation.RESOLVED_ROWS_MAX:
            raise UsageError(
                f"--ids-from: at most {operation.RESOLVED_ROWS_MAX} rows are closed at a time; give a part of them"
            )
    return found


def as_object(row: QuarantinedEvent) -> dict[str, Any]:
    """A row as JSON shows it, with the reason in words."""
    words = row.explanation
    return asdict(row) | {"reason_en": words.en, "reason_th": words.th, "next_step": words.next_step}


def _state(state: State) -> operation.State:
    states: dict[State, operation.State] = {
        State.OPEN: "open",
        State.REDRIVEN: "redriven",
        State.DISCARDED: "discarded",
    }
    return states[state]


def _line(row: QuarantinedEvent) -> tuple[object, ...]:
    texts = (escaped(text) for text in (row.reason, row.event_id, row.event_type, row.object_id))
    return (row.id, f"{row.at:%Y-%m-%d %H:%M:%S}", row.stage, *texts, row.attempts, row.state, escaped(row.detail))


def _print_row(found: Stored, lang: Language) -> None:
    row, words = found.event, found.event.explanation
    facts = (
        ("row", f"{row.id}, {row.state}" + (f" by {escaped(row.actor)}" if row.actor else "")),
        ("note", escaped(row.note)),
        ("set aside", f"{row.at:%Y-%m-%d %H:%M:%S} UTC by {row.stage}, tried {row.attempts} times"),
        ("reason", f"{escaped(row.reason)}: {words.th if lang is Language.TH else words.en}"),
        ("detail", escaped(row.detail)),
        ("next step", words.next_step),
        ("event", escaped(row.event_id)),
        ("type", escaped(row.event_type)),
        ("object", escaped(row.object_id)),
        ("delivery", escaped(row.source)),
    )
    print_table("", ("", ""), [fact for fact in facts if fact[1]])
    print_table("", ("header", "value"), [(escaped(name), escaped(value)) for name, value in found.headers.items()])
    console.print(f"\n{row.body_bytes} bytes:", markup=False)
    print(escaped_bytes(found.raw[:SHOWN_BYTES], lines=True))
    if len(found.raw) > SHOWN_BYTES:
        console.print(f"... the first {SHOWN_BYTES} of {row.body_bytes} bytes; --raw gives all", markup=False)


def _closed_line(row: Closed) -> str:
    if row.changed:
        return f"{row.id}: closed"
    by = f" by {escaped(row.actor)}" if row.actor else ""
    return f"{row.id}: was {row.state}{by} already ({escaped(row.note)}); nothing changed"
