"""`tallyhook gaps`: what is missing in the gateway's sequence, and closing it by hand."""

import re
from dataclasses import asdict

import typer

from sinks.domain.sequences import Span
from tallyhook.cli.escaping import escaped
from tallyhook.cli.output import JsonOption, console, errors, print_json, print_table
from tallyhook.clock import SystemClock
from tallyhook.errors import UsageError
from tallyhook.operations.gaps import SEQUENCE_MAX, Counted, Gap, Gaps, GapTable, demand_known, merchant_of
from tallyhook.postgres import connect
from tallyhook.settings import load

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)

_RANGE = re.compile(r"^([0-9]{1,19})(?:-([0-9]{1,19}))?$")


@app.callback()
def gaps(
    context: typer.Context,
    merchant: str | None = typer.Option(None, "--merchant", help="Only this merchant's."),
    everything: bool = typer.Option(False, "--all", help="Also ranges that are ignored or not listed by the gateway."),
    limit: int = typer.Option(100, min=1, max=10_000, help="Most ranges."),
    as_json: JsonOption = False,
) -> None:
    """Show which numbers of the gateway's sequence are missing, oldest first, and close what need not come.

    normal: the gateway may still deliver it. late: it hardly will. lost: over 4 days (TALLYHOOK_GAPS_LOST_AFTER_HOURS);
    exit code 1. `tallyhook backfill --gaps` fetches what the gateway lists and closes what it does not.

    Example: tallyhook gaps

    Example: tallyhook gaps --all --json
    """
    if context.invoked_subcommand is not None:
        return
    settings = load()
    if not settings.installation.livemode:
        raise UsageError("an installation for test events (TALLYHOOK_LIVEMODE=false) keeps no sequence")
    with connect(settings.database, "gaps") as connection:
        table = GapTable(connection, settings.installation.schema_name)
        if merchant is not None:
            demand_known(sorted(table.heads()), settings, merchant)
        found = table.find(settings.gaps, SystemClock().now(), merchant=merchant, closed=everything, limit=limit)
    if as_json:
        print_json(_document(found))
    else:
        print_gaps(found)
    if found.lost.ranges:
        raise typer.Exit(1)


@app.command("ignore")
def ignore(
    numbers: str = typer.Argument(metavar="FIRST[-LAST]", help="A number, or a range with both its ends."),
    reason: str = typer.Option(..., help="Why it need not come; kept with the range."),
    actor: str = typer.Option(..., help="Who decides this; kept with the range."),
    merchant: str | None = typer.Option(None, "--merchant", help="Whose sequence, where there are several."),
    as_json: JsonOption = False,
) -> None:
    """Close what is open within a range; what lies beyond it stays open. A number that comes yet is taken in.

    Exit code 1, and nothing changed, when nothing is open in it.

    Example: tallyhook gaps ignore 1040-1047 --reason "outage at the gateway, ticket 12" --actor nok
    """
    span = _span(numbers)
    settings = load()
    with connect(settings.database, "gaps") as connection:
        table = GapTable(connection, settings.installation.schema_name)
        whose = merchant_of(table, settings, merchant)
        done = table.ignore(whose, span, reason=reason, actor=actor)
    if as_json:
        print_json({"merchant": whose, "ranges": done.ranges, "numbers": done.numbers})
    else:
        console.print(f"ignored: {_counted(done)} of merchant {escaped(whose)}", markup=False, soft_wrap=True)


def _span(text: str) -> Span:
    found = _RANGE.match(text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if not first <= last <= SEQUENCE_MAX:
        raise UsageError(f"{escaped(text)}: must be a number of 0 to 2^63-1, or a range FIRST-LAST")
    return Span(first, last)


def print_gaps(found: Gaps) -> None:
    """The ranges, what was seen, and how much is missing."""
    if found.gaps:
        print_table(
            "",
            ("merchant", "numbers", "count", "opened (UTC)", "age", "standing", "why"),
            [_line(gap) for gap in found.gaps],
        )
    if found.ranges > len(found.gaps):
        console.print(f"shown: {len(found.gaps)} of {found.ranges} ranges; more with --limit", markup=False)
    for merchant, span in found.heads.items():
        console.print(f"merchant {escaped(merchant)}: seen from {span.first} to {span.last}", markup=False)
    if not found.heads:
        console.print("no event was seen yet", markup=False)
    elif not found.open.ranges:
        console.print("nothing is missing", markup=False)
    else:
        console.print(f"missing: {_counted(found.open)}{_older(found)}", markup=False, soft_wrap=True)
    if found.late.ranges:
        console.print("next step: `tallyhook backfill --gaps`", markup=False)
    if not found.kept:
        errors.print("no sink keeps the numbers at this moment: what arrived since is not in here", markup=False)


def _line(gap: Gap) -> tuple[object, ...]:
    numbers = str(gap.first) if gap.first == gap.last else f"{gap.first}-{gap.last}"
    why = f"{escaped(gap.actor)}: {escaped(gap.reason)}" if gap.closed_at else ""
    opened = f"{gap.opened_at:%Y-%m-%d %H:%M:%S}"
    return (escaped(gap.merchant), numbers, gap.count, opened, f"{gap.age_hours:.1f} h", gap.standing, why)


def _older(found: Gaps) -> str:
    if not found.late.ranges:
        return ""
    return f"; of these late or lost: {_counted(found.late)}; lost: {_counted(found.lost)}"


def _counted(counted: Counted) -> str:
    numbers = "1 number" if counted.numbers == 1 else f"{counted.numbers} numbers"
    return f"{numbers} in 1 range" if counted.ranges == 1 else f"{numbers} in {counted.ranges} ranges"


def _document(found: Gaps) -> dict[str, object]:
    return {
        "open": asdict(found.open),
        "late": asdict(found.late),
        "lost": asdict(found.lost),
        "ranges": found.ranges,
        "kept": found.kept,
        "merchants": [
            {"merchant": merchant, "first_seen": span.first, "highest_seen": span.last}
            for merchant, span in found.heads.items()
        ],
        "gaps": [asdict(gap) | {"count": gap.count} for gap in found.gaps],
    }
