"""`tallyhook audit`: the promises, recomputed from topics and tables while the pipeline runs."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from tallyhook.cli.output import JsonOption, console, errors, print_json, print_table
from tallyhook.cli.quarantine_options import moment
from tallyhook.clock import SystemClock
from tallyhook.errors import UsageError
from tallyhook.operations.audit.findings import AuditReport
from tallyhook.operations.audit.run import Progress as Tell
from tallyhook.operations.audit.run import audit as run
from tallyhook.operations.audit.scope import shown
from tallyhook.settings import load


def audit(
    since: str | None = typer.Option(
        None,
        "--since",
        help="Only what was received or changed from then on: 2026-03-01, 2026-03-01T10:00Z, or an age as 90m, 12h, 3d."
        " What is thereby not checked is named.",
    ),
    as_json: JsonOption = False,
) -> None:
    """Recompute from the stored bytes what must have come of them, and compare. Exit code 1 with counterexamples.

    It reads the topics and one snapshot of the database, while the pipeline runs, and changes nothing. Every check is
    made, whatever another one finds; of each the first 20 counterexamples are shown by their ids.

    Example: tallyhook audit

    Example: tallyhook audit --since 1d

    Example: tallyhook audit --json > audit.json
    """
    settings, now = load(), SystemClock().now()
    begin = moment("--since", since, now)
    if begin is not None and begin > now:
        raise UsageError(f"--since {since}: lies in the future")
    with _report_progress(wanted=not as_json) as tell:
        report = run(settings, tell, begin)
    if as_json:
        print_json(report.as_json())
    else:
        _print(report)
    if not report.clean:
        raise typer.Exit(1)


def _print(report: AuditReport) -> None:
    rows = [
        (check.name, f"{check.looked_at:,}", f"{check.found:,}" if check.found else "none", check.meaning.question)
        for check in report.checks
    ]
    print_table("", ("check", "compared", "counterexamples", "what must hold"), rows)
    for check in report.checks:
        for what, how_many in check.left_out.items():
            console.print(f"{check.name}: not judged: {how_many:,} {what}", markup=False, soft_wrap=True)
    for check in report.checks:
        if not check.found:
            continue
        console.print(f"\n{check.name} is broken. {check.meaning.endangers}.", markup=False, soft_wrap=True)
        for example in check.examples:
            console.print(f"  {example.text}", markup=False, soft_wrap=True)
        if check.found > len(check.examples):
            console.print(f"  and {check.found - len(check.examples):,} more", markup=False)
    part = "" if report.since is None else f", only what was received or changed since {shown(report.since)}"
    console.print(
        f"\n{'clean' if report.clean else 'NOT clean'}: the database of {shown(report.snapshot_at)}{part}",
        soft_wrap=True,
    )


@contextmanager
def _report_progress(*, wanted: bool) -> Iterator[Tell]:
    """A bar for each step on a terminal; nothing where standard error is none, so that a scheduled run stays quiet."""
    if not (wanted and errors.is_terminal):
        yield lambda _step, _done, _total: None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, transient=True) as display:
        bars: dict[str, TaskID] = {}

        def tell(step: str, done: int, total: int) -> None:
            if step not in bars:
                # What went before is done, also where its length was not known.
                for task in display.tasks:
                    display.update(task.id, total=task.total or 1, completed=task.total or 1)
                bars[step] = display.add_task(step, total=total or None)
            display.update(bars[step], advance=done, total=total or None)

        yield tell
