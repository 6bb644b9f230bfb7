"""How far the simulated gateway is: a bar at a terminal, else a line now and then."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tallyhook.cli.output import errors
from tallyhook.gateway.simulator import Simulator

LINE_SECONDS = 10.0


@contextmanager
def gateway_progress() -> Iterator[Callable[[Simulator], None]]:
    """Gives a function that shows the simulator's counts and its virtual clock."""
    if not errors.is_terminal:
        yield _lines()
        return
    columns = (
        TextColumn("delivered"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, transient=True) as progress:
        task = progress.add_task("", total=None)

        def show(simulator: Simulator) -> None:
            counts = simulator.counts
            progress.update(task, total=counts.deliverable, completed=counts.delivered, description=_words(simulator))

        yield show


def _lines() -> Callable[[Simulator], None]:
    last = time.monotonic()

    def show(simulator: Simulator) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_SECONDS and not simulator.finished:
            last = time.monotonic()
            counts = simulator.counts
            errors.print(f"  {counts.delivered} of {counts.deliverable} delivered, {_words(simulator)}", markup=False)

    return show


def _words(simulator: Simulator) -> str:
    counts = simulator.counts
    return f"{counts.attempts} attempts, {counts.pending} pending, virtual {simulator.virtual_now:%Y-%m-%d %H:%M}"
