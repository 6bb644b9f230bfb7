"""`tallyhook compare`: an old handler that runs beside, row by row."""

import threading
from collections import Counter
from dataclasses import asdict

import psycopg
import typer

from sinks.migrations import check
from tallyhook.cli.differences import shown_events, with_progress
from tallyhook.cli.escaping import escaped
from tallyhook.cli.json_stream import JsonStream
from tallyhook.cli.old_handler import FromDatabaseOption, FromSchemaOption, MapOption, age, shown_value
from tallyhook.cli.output import JsonOption, console
from tallyhook.cli.stopping import signals_set
from tallyhook.clock import SystemClock
from tallyhook.errors import DatabaseUnavailable, UsageError
from tallyhook.operations.cutover.difference import Compared, Difference, Finding, Summary
from tallyhook.operations.cutover.mapping import read_map
from tallyhook.operations.cutover.old_database import old_database
from tallyhook.operations.cutover.shadow import Interrupted, Shadow
from tallyhook.postgres import connect
from tallyhook.settings import load


def compare(
    from_database: FromDatabaseOption = None,
    from_schema: FromSchemaOption = "public",
    map_file: MapOption = None,
    watch: bool = typer.Option(False, "--watch", help="Compare again and again, until Ctrl-C; tell what changes."),
    interval: float = typer.Option(60.0, min=0.1, max=86_400, help="With --watch: seconds between comparisons."),
    settle_seconds: float = typer.Option(5.0, min=0, max=3600, help="A difference counts if it lasts so long."),
    ignore_newer_than: str = typer.Option("0s", help="Pass over rows that changed within 30s, 5m, 2h."),
    most: int = typer.Option(1000, min=1, max=100_000, help="Stop after so many rows that differ."),
    as_json: JsonOption = False,
) -> None:
    """Compare with a hand-written handler that gets the same webhooks: what each of them made of each object.

    Versions, statuses, amounts, what was credited, reversed, closed, refunded and released, chunks, reversals, balance
    transactions and users' balances. Each difference is told with both values and the events that made ours; nothing
    is changed. Exit code 1 when there is one.

    Example: tallyhook compare --from-database postgresql://reader@old-db/shop --ignore-newer-than 5m

    Example: tallyhook compare --from-database postgresql://reader@old-db/shop --watch --interval 300
    """
    if from_database is None:
        raise UsageError("--from-database URL is needed: where the old handler keeps its tables")
    if watch and as_json:
        raise UsageError("--watch has no end, and --json is one document: give one of them")
    newer, mapped = age(ignore_newer_than), {} if map_file is None else read_map(map_file)
    settings, stopping, clock = load(), threading.Event(), SystemClock()
    report = Watching() if watch else Report(as_json)
    try:
        with (
            connect(settings.database, "compare") as connection,
            old_database(from_database, from_schema, mapped) as old,
            signals_set(stopping),
        ):
            check(connection, settings.installation)
            shadow = Shadow(
                connection,
                settings.installation.schema_name,
                old,
                settle_seconds=settle_seconds,
                ignore_newer=newer,
                most=most,
                clock=clock,
                stopping=stopping,
            )
            _round(shadow, report)
            while watch and not stopping.wait(interval):
                _round(shadow, report)
    except Interrupted:
        if not watch:
            raise
    except psycopg.Error as failure:
        raise DatabaseUnavailable(f"a database ended the comparison: {str(failure).strip()}") from failure
    if report.differences:
        raise typer.Exit(1)


class Report:
    """Tells each difference, and at the end how much was compared."""

    def __init__(self, as_json: bool) -> None:
        self._stream = JsonStream("differences") if as_json else None
        self._compared: dict[str, int] = {}
        self._summary: Summary | None = None
        self.differences: Counter[str] = Counter()

    def begin(self) -> None:
        """Opens the document."""
        if self._stream is not None:
            self._stream.begin()

    def tell(self, finding: Finding) -> None:
        """One difference; or how far the comparison is."""
        if isinstance(finding, Compared):
            self._compared[finding.kind] = finding.done
        elif isinstance(finding, Summary):
            self._summary = finding
        else:
            self.differences[finding.what] += 1
            if self._stream is not None:
                self._stream.add(asdict(finding))
            else:
                print(line(finding))

    def end(self) -> None:
        """The sums."""
        summary = self._summary
        if self._stream is not None:
            ended = {"whole": False} if summary is None else asdict(summary)
            self._stream.end({"compared": self._compared, "counts": dict(self.differences), **ended})
            return
        compared = ", ".join(f"{count} {kind}" for kind, count in self._compared.items())
        found = ", ".join(f"{count} {what}" for what, count in self.differences.items())
        console.print(f"compared: {compared or 'nothing'}", markup=False)
        if summary is None:
            return
        for count, words in ((summary.fresh, "changed too lately"), (summary.moving, "changed at every look")):
            if count:
                console.print(f"not judged: {count} rows that {words}", markup=False)
        if summary.without:
            console.print(f"the old handler has no {', '.join(summary.without)}", markup=False)
        if not summary.whole:
            console.print("stopped there: --most differences were found", markup=False)
        console.print(f"differences: {found or 'none'}", markup=False)


class Watching:
    """Tells what is new and what is gone since the last round."""

    def __init__(self) -> None:
        self._told: dict[str, Difference] = {}
        self._round: dict[str, Difference] = {}
        self.differences: Counter[str] = Counter()

    def begin(self) -> None:
        """A new round."""
        self._round = {}

    def tell(self, finding: Finding) -> None:
        """A difference is printed unless the last round had it."""
        if isinstance(finding, Difference):
            key = repr((finding.kind, finding.id, finding.member, finding.here, finding.there))
            self._round[key] = finding
            if key not in self._told:
                print(line(finding), flush=True)

    def end(self) -> None:
        """What is gone; and how many there are now."""
        for key in self._told.keys() - self._round.keys():
            gone = self._told[key]
            print(f"{gone.kind} {escaped(gone.id)}  {gone.member or 'the row'} differs no more", flush=True)
        if self._told.keys() != self._round.keys() or not self._told:
            console.print(f"differences now: {len(self._round) or 'none'}", markup=False)
        self._told = self._round
        self.differences = Counter(finding.what for finding in self._round.values())


def line(found: Difference) -> str:
    """A difference in one line; what came from outside is escaped."""
    values = ""
    if found.member is not None or found.there is not None:
        name = "" if found.member is None else f"{found.member}: "
        values = f"  {name}here {shown_value(found.here)}, there {shown_value(found.there)}"
    return f"{found.kind} {escaped(found.id)}  {found.what}{values}  events: {shown_events(found.events)}"


def _round(shadow: Shadow, report: Report | Watching) -> None:
    report.begin()
    try:
        for finding in with_progress(shadow.run(), _tally):
            report.tell(finding)
    except Interrupted:
        if isinstance(report, Report):
            report.end()
        raise
    report.end()


def _tally(finding: Finding) -> tuple[str, int, int] | None:
    return (finding.kind, finding.done, finding.total) if isinstance(finding, Compared) else None
