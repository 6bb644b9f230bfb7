"""`tallyhook redrive`: sends what was set aside once more."""

import sys
import threading
from collections import Counter
from collections.abc import Iterator

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tallyhook.cli.escaping import escaped
from tallyhook.cli.json_stream import JsonStream
from tallyhook.cli.output import JsonOption, console, errors
from tallyhook.cli.quarantine_options import (
    ReasonOption,
    SinceOption,
    StageOption,
    TypeOption,
    UntilOption,
    known_reason,
    moment,
)
from tallyhook.cli.stopping import signals_set
from tallyhook.clock import SystemClock
from tallyhook.errors import UsageError
from tallyhook.operations.quarantine import NEWEST, Wanted
from tallyhook.operations.redrive import Outcome, Redrive
from tallyhook.postgres import connect
from tallyhook.settings import load

LIMIT_ROWS = 10_000_000
LINES_MAX = 1000
"""Of more rows than this, only those that could not be sent get a line of their own; `--json` has all."""


def redrive(
    ids: list[int] | None = typer.Option(None, "--id", min=1, max=NEWEST, help="This row; may be repeated."),
    event_ids: list[str] | None = typer.Option(None, "--event-id", help="Rows of this event; may be repeated."),
    reason: ReasonOption = None,
    stage: StageOption = None,
    event_type: TypeOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    discarded: bool = typer.Option(False, "--discarded", help="Also rows that were discarded; they are open again."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what would be sent; change nothing."),
    limit: int = typer.Option(1000, min=1, max=LIMIT_ROWS, help="Most rows."),
    rate: float = typer.Option(100.0, min=0.1, max=10_000, help="Most rows a second."),
    yes: bool = typer.Option(False, "--yes", help="Do not ask."),
    as_json: JsonOption = False,
) -> None:
    """Send events that were set aside to the events topic once more; the sink decides anew, each once.

    A row is closed by the sink, in the transaction that applies its event. An event that is still wrong is set aside
    again as a new row. Doing this twice, or stopping it with Ctrl-C, does no harm. Exit code 1 when a row could not be
    sent, with the reason for each.

    Example: tallyhook redrive --reason payload_too_large --dry-run

    Example: tallyhook redrive --id 7 --id 8

    Example: tallyhook redrive --reason database_refused --limit 500000 --rate 5000 --yes
    """
    settings, now = load(), SystemClock().now()
    wanted = Wanted(
        ids=tuple(ids or ()),
        event_ids=tuple(event_ids or ()),
        reason=known_reason(reason),
        stage=stage.value if stage else None,
        event_type=event_type,
        since=moment("--since", since, now),
        until=moment("--until", until, now),
        states=("open", "discarded") if discarded else ("open",),
    )
    stopping = threading.Event()
    with connect(settings.database, "redrive") as connection:
        work = Redrive(connection, settings, wanted, rate_per_second=rate, clock=SystemClock(), stopping=stopping)
        rows = min(work.total, limit)
        if rows and not (dry_run or yes or wanted.ids):
            _ask(rows, settings.sink.quarantine_limit)
        report = Report(as_json, dry_run=dry_run, rows=rows, left=work.total)
        closed, shown = work.closed(), not (dry_run or as_json)
        report.begin()
        try:
            for outcome in closed:
                report.tell(outcome)
            with signals_set(stopping):
                for outcome in _with_progress(work.look(limit) if dry_run else work.run(limit), rows, shown=shown):
                    report.tell(outcome)
                    report.left -= 1
        finally:
            report.end()
    if stopping.is_set():
        raise KeyboardInterrupt
    if report.undone:
        raise typer.Exit(1)


class Report:
    """Tells each outcome as it comes, and the sum of them at the end.

    Args:
        rows: how many there will be, about.

    Attributes:
        left: how many rows fit and were not looked at.
        undone: how many are left to be done by hand.
    """

    def __init__(self, as_json: bool, *, dry_run: bool, rows: int, left: int) -> None:
        self._stream = JsonStream("rows") if as_json else None
        self._dry_run, self._is_long = dry_run, rows > LINES_MAX
        self.fates: Counter[str] = Counter()
        self.left, self.undone = left, 0

    def begin(self) -> None:
        """Opens the document."""
        if self._stream is not None:
            self._stream.begin()

    def tell(self, outcome: Outcome) -> None:
        """One row."""
        event = outcome.event
        self.fates[outcome.fate] += 1
        self.undone += not outcome.done
        if self._stream is not None:
            self._stream.add(
                {
                    "id": event.id,
                    "event_id": event.event_id,
                    "object_id": event.object_id,
                    "reason": event.reason,
                    "outcome": outcome.fate,
                    "why": outcome.why or None,
                }
            )
        elif not (self._is_long and outcome.done):
            why = f": {escaped(outcome.why)}" if outcome.why else ""
            name = escaped(event.event_id) or "(no id)"
            print(f"{event.id}  {name}  {escaped(event.object_id)}  {escaped(event.reason)}  {outcome.fate}{why}")

    def end(self) -> None:
        """The sum."""
        if self._stream is not None:
            self._stream.end({"dry_run": self._dry_run, "outcomes": self.fates, "left": self.left})
            return
        counted = ", ".join(f"{count:,} {fate}" for fate, count in self.fates.items())
        nothing = "nothing was sent" if self.left else "no open row fits"
        console.print(counted or nothing, markup=False)
        if self.left:
            console.print(f"left: {self.left:,}", markup=False)


def _ask(rows: int, quarantine_limit: int) -> None:
    risk = (
        f" If more than {quarantine_limit} of them are still wrong, the sink stops until it is restarted:"
        " try a few first (--limit)."
        if rows > quarantine_limit
        else ""
    )
    if not sys.stdin.isatty():
        raise UsageError(f"nothing was sent; rows that fit: {rows}.{risk} Look with --dry-run, then give --yes or --id")
    typer.confirm(f"Rows to be sent: {rows:,}.{risk} Go on?", abort=True, err=True)


def _with_progress(outcomes: Iterator[Outcome], rows: int, *, shown: bool) -> Iterator[Outcome]:
    columns = (TextColumn("sending"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    quiet = not shown or rows < 2 or not errors.is_terminal
    # Where the lines go to a file they must not be taken over by the bar's own stream.
    lines_here = sys.stdout.isatty()
    with Progress(*columns, console=errors, transient=True, disable=quiet, redirect_stdout=lines_here) as progress:
        task = progress.add_task("", total=rows)
        for outcome in outcomes:
            yield outcome
            progress.advance(task)
