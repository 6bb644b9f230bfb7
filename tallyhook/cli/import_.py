"""`tallyhook import`: takes the rows of a hand-written handler over."""

import io
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

import psycopg
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from sinks.migrations import check
from tallyhook.cli.escaping import escaped
from tallyhook.cli.json_stream import JsonStream
from tallyhook.cli.old_handler import FromDatabaseOption, FromSchemaOption, MapOption, shown_value
from tallyhook.cli.output import JsonOption, console, errors, print_json
from tallyhook.errors import DatabaseUnavailable, UsageError
from tallyhook.operations.cutover.columns import BY_PLURAL, Kind
from tallyhook.operations.cutover.csv_source import CsvSource
from tallyhook.operations.cutover.importing import Counted, Different, Import, Outcome
from tallyhook.operations.cutover.mapping import read_map
from tallyhook.operations.cutover.old_database import old_database
from tallyhook.operations.cutover.staging import Faulty, Tell
from tallyhook.postgres import connect
from tallyhook.settings import load

WHAT = ("all", *BY_PLURAL)


def import_(
    what: str = typer.Argument(..., metavar="|".join(WHAT), help="Which rows; all: of a database."),
    file: str | None = typer.Argument(None, help="A CSV file with the columns' names, or - for standard input."),
    from_database: FromDatabaseOption = None,
    from_schema: FromSchemaOption = "public",
    map_file: MapOption = None,
    source: str = typer.Option("old-handler", help="Name of the old handler, kept with each imported row."),
    merchant: str | None = typer.Option(
        None, "--merchant", help="Whose the balance transactions are; by default that of the door's settings."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what would be done; change nothing."),
    as_json: JsonOption = False,
) -> None:
    """Take over the rows of a hand-written handler, so that nothing it has done is done again.

    Each row is checked first; where one cannot be taken over it is told with its line and id, and nothing is written.
    What is here already is compared and never overwritten. No effect leaves for imported rows. Interrupted and run
    again, it goes on where it was; run twice, it does nothing more. Exit code 1: rows are different here, or the old
    handler has left something undone.

    Example: tallyhook import all --from-database postgresql://reader@old-db/shop --from-schema payments --dry-run

    Example: tallyhook import deposits deposits.csv
    """
    kind = _kind(what, file, from_database)
    mapped = {} if map_file is None else read_map(map_file)
    settings = load()
    whose = merchant or settings.ingress.merchant_id
    report = Report(as_json, dry_run=dry_run)
    try:
        with connect(settings.database, "import") as connection, _progress() as tell:
            check(connection, settings.installation)
            work = Import(connection, settings.installation, source, whose)
            if kind is None:
                with old_database(from_database or "", from_schema, mapped) as old:
                    for plural in work.staging.add_all(old, tell):
                        errors.print(f"the old handler has no {plural}: none are taken over", markup=False)
            else:
                work.refuse_beside_a_sink(kind)
                with _opened(file or "-") as text:
                    work.staging.add(kind, CsvSource(kind, text).rows(), tell, None)
            work.staging.check()
            report.begin()
            try:
                for outcome in work.run(tell, dry_run=dry_run):
                    report.tell(outcome)
            finally:
                report.end()
    except Faulty as failure:
        _tell_faults(failure, as_json=as_json)
        raise
    except psycopg.Error as failure:
        raise DatabaseUnavailable(f"a database ended the import: {str(failure).strip()}") from failure
    if report.remarks:
        raise typer.Exit(1)


def _kind(what: str, file: str | None, from_database: str | None) -> Kind | None:
    """The kind of a file's rows; None for a whole database."""
    if what not in WHAT:
        raise UsageError(f"{what!r} is none of {', '.join(WHAT)}")
    if what == "all":
        if from_database is None or file is not None:
            raise UsageError("`all` takes --from-database URL and no file")
        return None
    if from_database is not None or file is None:
        raise UsageError(f"{what} takes a CSV file, or - for standard input; of a database use `all` (and --map)")
    return BY_PLURAL[what]


@contextmanager
def _opened(file: str) -> Iterator[TextIO]:
    """The file's text; a byte order mark at its beginning is dropped."""
    try:
        with nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as raw:
            text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
            yield text
            text.detach()
    except OSError as failure:
        raise UsageError(f"{file} cannot be read: {failure.strerror}") from None


class Report:
    """Tells each difference, and at the end how much was written."""

    def __init__(self, as_json: bool, *, dry_run: bool) -> None:
        self._stream = JsonStream("remarks") if as_json else None
        self._dry_run = dry_run
        self._new: Counter[str] = Counter()
        self._same: Counter[str] = Counter()
        self._unlike: dict[str, set[str]] = {}
        self.remarks = 0

    def begin(self) -> None:
        """Opens the document."""
        if self._stream is not None:
            self._stream.begin()

    def tell(self, outcome: Outcome) -> None:
        """One difference, or what was counted."""
        if isinstance(outcome, Counted):
            self._new[outcome.kind] += outcome.new
            self._same[outcome.kind] += outcome.same
            return
        self.remarks += 1
        word = "different" if isinstance(outcome, Different) else "undone"
        if isinstance(outcome, Different):
            self._unlike.setdefault(outcome.kind, set()).add(outcome.object_id)
        if self._stream is not None:
            self._stream.add({"what": word, **asdict(outcome)})
            return
        named = f"{outcome.kind} {escaped(outcome.object_id)} ({escaped(outcome.place)})"
        if isinstance(outcome, Different):
            since = "imported before with" if outcome.imported else "here with"
            here, there = shown_value(outcome.here), shown_value(outcome.there)
            print(f"{named}  {since} {outcome.member} {here}, the old handler has {there}")
        else:
            print(f"{named}  imported as it is, nothing here will do what is left: {outcome.what}")

    def end(self) -> None:
        """The sums."""
        rows = [
            {
                "kind": name,
                "new": self._new[name],
                "same": self._same[name],
                "different": len(self._unlike.get(name, ())),
            }
            for name in BY_PLURAL
            if name in self._new or name in self._unlike
        ]
        if self._stream is not None:
            self._stream.end({"dry_run": self._dry_run, "counts": rows})
            return
        word = "would be written" if self._dry_run else "written"
        for row in rows:
            console.print(
                f"{row['kind']}: {row['new']} {word}, {row['same']} there already, {row['different']} different",
                markup=False,
            )


def _tell_faults(failure: Faulty, *, as_json: bool) -> None:
    if as_json:
        print_json({"faults": [asdict(fault) for fault in failure.faults]})
        return
    for fault in failure.faults:
        named = "" if fault.object_id is None else f" {escaped(fault.object_id[:80])}"
        print(f"{escaped(fault.place)}: {fault.kind}{named}: {escaped(fault.what)}")


@contextmanager
def _progress() -> Iterator[Tell]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # Where the lines go to a file they must not be taken over by the bar's own stream.
    lines_here = sys.stdout.isatty()
    with Progress(
        *columns, console=errors, transient=True, disable=not errors.is_terminal, redirect_stdout=lines_here
    ) as display:
        bars: dict[str, TaskID] = {}

        def tell(step: str, rows: int, total: int | None) -> None:
            if step not in bars:
                bars[step] = display.add_task(step, total=total)
            display.update(bars[step], advance=rows, total=total)

        yield tell
