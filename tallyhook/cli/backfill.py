"""`tallyhook backfill`: fetches events that never came."""

import sys
import threading
from collections import Counter
from collections.abc import Iterator

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from sinks.domain.sequences import Span
from tallyhook.cli.escaping import escaped
from tallyhook.cli.json_stream import JsonStream
from tallyhook.cli.output import JsonOption, console, errors
from tallyhook.cli.stopping import signals_set
from tallyhook.clock import SystemClock
from tallyhook.errors import UsageError
from tallyhook.operations.backfill import Backfill, Fetched, NotReached, Outcome, Passed, Unlisted
from tallyhook.operations.confirmed_publisher import ConfirmedPublisher
from tallyhook.operations.gaps import SEQUENCE_MAX, GapTable, merchant_of
from tallyhook.operations.gateway_api import GatewayApi
from tallyhook.operations.gateway_http import GatewayHttp
from tallyhook.postgres import connect
from tallyhook.settings import load


def backfill(
    since_sequence: int | None = typer.Option(
        None, min=0, max=SEQUENCE_MAX, help="Fetch every event with a higher number, to the end of the list."
    ),
    gaps: bool = typer.Option(False, "--gaps", help="Fetch only what is missing (see `tallyhook gaps`)."),
    merchant: str | None = typer.Option(None, "--merchant", help="Whose sequence; the API's key must be theirs."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what would be done; change nothing."),
    restart: bool = typer.Option(False, "--restart", help="With --since-sequence: forget how far it came before."),
    rate: float = typer.Option(200.0, min=0.1, max=10_000, help="Most events a second."),
    actor: str = typer.Option("backfill", help="Who closes gaps that the gateway does not list."),
    as_json: JsonOption = False,
) -> None:
    """Fetch events from the gateway's API that never came, and publish them as if the door had taken them.

    Each is judged like any other delivery and counts once; what is in the inbox is not sent again. Missing numbers that
    the gateway's list has passed by are closed as unlisted. Stopped with Ctrl-C, it goes on where it was when it is
    run again. Exit code 0: all that was asked for is published or not listed; 1: something is not.

    Example: tallyhook backfill --gaps --dry-run

    Example: tallyhook backfill --since-sequence 120000
    """
    if gaps == (since_sequence is not None):
        raise UsageError("give either --gaps or --since-sequence")
    settings, stopping, clock = load(), threading.Event(), SystemClock()
    if not settings.installation.livemode:
        raise UsageError("an installation for test events (TALLYHOOK_LIVEMODE=false) keeps no sequence")
    api = GatewayApi(GatewayHttp(settings.gateway_api, clock=clock, stopping=stopping))
    report = Report(as_json, dry_run=dry_run)
    with connect(settings.database, "backfill") as connection, signals_set(stopping):
        table = GapTable(connection, settings.installation.schema_name)
        whose = merchant_of(table, settings, merchant, may_be_new=not gaps)
        publisher = None
        if not dry_run:
            publisher = ConfirmedPublisher(settings, rate_per_second=rate, clock=clock, stopping=stopping)
        work = Backfill(
            connection, settings, api, whose, publisher=publisher, actor=actor, clock=clock, stopping=stopping
        )
        ceiling = work.ceiling
        if since_sequence is None:
            outcomes, total, start = work.gaps(ceiling), work.missing(ceiling), 0
        else:
            if restart and not dry_run:
                work.forget(since_sequence)
            start = work.begun(since_sequence) or since_sequence
            if start != since_sequence:
                errors.print(f"goes on behind {start}, where it was; --restart begins anew", markup=False)
            outcomes, total = work.since(since_sequence), max(0, ceiling - start)
        report.begin()
        try:
            for outcome in _with_progress(outcomes, total, None if since_sequence is None else start):
                report.tell(outcome)
        finally:
            report.end()
            api.close()
    if stopping.is_set():
        raise KeyboardInterrupt
    if report.undone:
        raise typer.Exit(1)


class Report:
    """Tells each outcome, and the sum of them at the end."""

    def __init__(self, as_json: bool, *, dry_run: bool) -> None:
        self._stream = JsonStream("outcomes") if as_json else None
        self._dry_run = dry_run
        self.fates: Counter[str] = Counter()
        self.undone = 0

    def begin(self) -> None:
        """Opens the document."""
        if self._stream is not None:
            self._stream.begin()

    def tell(self, outcome: Outcome) -> None:
        """One outcome; what is in the inbox already is only counted."""
        if isinstance(outcome, Fetched):
            self.fates[outcome.fate] += 1
            self.undone += outcome.fate == "not confirmed"
            if outcome.record is not None:
                self._tell_fetched(outcome)
        elif isinstance(outcome, Unlisted):
            fate = "unlisted" if outcome.done else "would be unlisted"
            self.fates[fate] += outcome.span.count
            if self._stream is not None:
                self._stream.add({"first": outcome.span.first, "last": outcome.span.last, "outcome": fate})
            else:
                print(f"{_numbers(outcome.span)}  {fate}: the gateway's list has passed it by")
        elif isinstance(outcome, NotReached):
            self.fates["not reached"] += outcome.numbers
            self.undone += outcome.numbers
            if self._stream is None:
                print(f"{outcome.numbers} missing numbers lie behind {outcome.listed_up_to}, where the list ends")

    def end(self) -> None:
        """The sum."""
        if self._stream is not None:
            self._stream.end({"dry_run": self._dry_run, "counts": dict(self.fates)})
        else:
            counted = ", ".join(f"{count} {fate}" for fate, count in self.fates.items())
            console.print(counted or "there is nothing to be fetched", markup=False)

    def _tell_fetched(self, outcome: Fetched) -> None:
        record = outcome.record
        if record is None:
            return
        if self._stream is not None:
            self._stream.add(
                {
                    "sequence": outcome.sequence,
                    "event_id": record.event_id,
                    "type": record.event_type,
                    "object_id": record.object_id,
                    "outcome": outcome.fate,
                    "to": record.place,
                    "why": outcome.why or None,
                }
            )
            return
        names = "  ".join(escaped(name) or "-" for name in (record.event_id, record.event_type, record.object_id))
        place = "" if record.place == "events" else f" to {record.place}"
        why = f": {escaped(outcome.why)}" if outcome.why else ""
        print(f"{outcome.sequence}  {names}  {outcome.fate}{place}{why}")


def _numbers(span: Span) -> str:
    return str(span.first) if span.count == 1 else f"{span.first}-{span.last}"


def _with_progress(outcomes: Iterator[Outcome], total: int, start: int | None) -> Iterator[Outcome]:
    """Shows how many missing numbers were looked for, or how far the list is read."""
    columns = (TextColumn("fetching"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # Where the lines go to a file they must not be taken over by the bar's own stream.
    lines_here = sys.stdout.isatty()
    with Progress(
        *columns, console=errors, transient=True, disable=not errors.is_terminal, redirect_stdout=lines_here
    ) as progress:
        task = progress.add_task("", total=total or None)
        for outcome in outcomes:
            yield outcome
            if not isinstance(outcome, Passed):
                continue
            if start is None:
                progress.advance(task, outcome.numbers)
            else:
                progress.update(
                    task, completed=max(0, outcome.sequence - start), total=max(total, outcome.sequence - start)
                )
