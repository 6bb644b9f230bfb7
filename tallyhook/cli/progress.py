"""A progress line for steps and downloads; plain lines where standard error is no terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from tallyhook.cli.output import errors
from tallyhook.local.service import Progress as Step


@contextmanager
def report_progress() -> Iterator[Callable[[Step], None]]:
    """Gives a function that shows each step it is called with, one line a step name; safe from several threads."""
    if not errors.is_terminal:
        yield _plain_lines()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        DownloadColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, transient=True) as display:
        tasks: dict[str, TaskID] = {}

        def show(step: Step) -> None:
            if step.step not in tasks:
                tasks[step.step] = display.add_task(step.message, total=step.total)
            display.update(tasks[step.step], description=step.message, total=step.total, completed=step.done or 0)

        yield show


def _plain_lines() -> Callable[[Step], None]:
    """A line for each new message, so that a log of a CI run stays short."""
    shown: dict[str, str] = {}

    def show(step: Step) -> None:
        if shown.get(step.step) != step.message:
            shown[step.step] = step.message
            errors.print(f"  {step.message}", markup=False)

    return show
