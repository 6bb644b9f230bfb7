"""How `reconcile` and `compare` show what differs: the events that led there, and how far they are."""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tallyhook.cli.escaping import escaped
from tallyhook.cli.output import errors
from tallyhook.operations.reconcile.difference import LedThere

Finding = TypeVar("Finding")

Tally = Callable[[Finding], tuple[str, int, int] | None]
"""Of a finding that tells how far a kind of object is: the kind, how many are done, and of how many; else None."""


def shown_events(events: Iterable[LedThere]) -> str:
    """The events that led to a difference, in one line; what came from outside is escaped."""
    return ", ".join(_led(event) for event in events) or "no event is known"


def _led(event: LedThere) -> str:
    version = "" if event.version is None else f"v{event.version} "
    reason = f", {escaped(event.reason)}" if event.reason else ""
    return f"{escaped(event.event_id) or '(no id)'} ({version}{escaped(event.verdict)}{reason})"


def with_progress(findings: Iterator[Finding], tally: Tally[Finding]) -> Iterator[Finding]:
    """The findings as they come, beside a bar for each kind where somebody sits before it."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # Where the lines go to a file they must not be taken over by the bar's own stream.
    lines_here = sys.stdout.isatty()
    with Progress(
        *columns, console=errors, transient=True, disable=not errors.is_terminal, redirect_stdout=lines_here
    ) as progress:
        tasks: dict[str, TaskID] = {}
        for finding in findings:
            yield finding
            told = tally(finding)
            if told is not None:
                kind, done, total = told
                if kind not in tasks:
                    tasks[kind] = progress.add_task(kind.replace("_", " "), total=total)
                progress.update(tasks[kind], completed=done, total=total)
