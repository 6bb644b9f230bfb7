"""Runs the simulated gateway and shows how it went: progress, counts, and what is not as it must be."""

import asyncio
import json
import os
import signal
from contextlib import ExitStack, suppress
from pathlib import Path

from tallyhook.cli.gateway_progress import gateway_progress
from tallyhook.cli.output import console, print_json
from tallyhook.clock import SystemClock
from tallyhook.errors import TallyhookError
from tallyhook.gateway.check import Check
from tallyhook.gateway.simulator import Setup, Simulator
from tallyhook.gateway.world.model import World
from tallyhook.operations.private_files import write_private

MOST_SENTENCES = 100


class Play:
    """One run of the simulator in the foreground.

    Args:
        ready_file: written once the API answers, removed at the end.

    Attributes:
        check: set where the database is to be compared at the end.
    """

    def __init__(self, world: World, setup: Setup, *, ready_file: Path | None, as_json: bool) -> None:
        self._world, self._setup = world, setup
        self._ready_file, self._as_json = ready_file, as_json
        self.check: Check | None = None
        self._stop = asyncio.Event()
        self._sentences: list[str] = []
        self._shown = False

    def stopped(self) -> bool:
        """Whether a signal came."""
        return self._stop.is_set()

    def run(self) -> int:
        """Until the world is delivered, or with `--serve` until a signal; gives the exit code."""
        if self.check is not None:
            self.check.begin()
        with ExitStack() as ends:
            report = ends.enter_context(gateway_progress())
            ends.callback(self._remove_ready_file)
            simulator = Simulator(
                self._world, self._setup, SystemClock(), started=self._started, report=report, ended=self._ended
            )
            asyncio.run(self._run(simulator))
        if not self._shown:
            self._sentences = [f"stopped before the end: {simulator.counts.pending} events were not yet accepted"]
            self._show(simulator)
        return 1 if self._sentences else 0

    async def _run(self, simulator: Simulator) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        await simulator.run(self._stop)

    def _started(self, url: str) -> None:
        if self._ready_file is not None:
            ready = {
                "api_url": url,
                "api_key": self._setup.api.key,
                "public_key": self._setup.key.public_text(),
                "pids": {"gateway": os.getpid()},
            }
            try:
                write_private(self._ready_file.absolute(), json.dumps(ready, indent=2) + "\n")
            except OSError as failure:
                raise TallyhookError(
                    f"ready file {self._ready_file} cannot be written: {failure.strerror}"
                ) from failure
        if not self._as_json:
            console.print(f"delivering to {self._setup.target}; API at {url}", markup=False, soft_wrap=True)

    def _remove_ready_file(self) -> None:
        if self._ready_file is not None:
            with suppress(OSError):
                self._ready_file.unlink(missing_ok=True)

    def _ended(self, simulator: Simulator) -> None:
        """Every delivery has ended; the check may take its time while the API answers."""
        lost = simulator.counts.lost
        self._sentences = [f"{event_id} was never accepted: its attempts are used up" for event_id in lost]
        if self.check is not None:
            if lost:
                self._sentences.append("the database was not compared: events are missing")
            else:
                self._sentences += self.check.differences(simulator.counts.accepted_attempts)
        self._show(simulator)
        if self._setup.serve and not self._as_json and not self.stopped():
            console.print("the API goes on answering; Ctrl-C stops it")

    def _show(self, simulator: Simulator) -> None:
        self._shown = True
        counts, correlations = simulator.counts, simulator.correlations
        left = len(self._sentences) - MOST_SENTENCES
        told = self._sentences[:MOST_SENTENCES] + ([f"and {left} more"] if left > 0 else [])
        if self._as_json:
            written = {"written": correlations.written, "waiting": correlations.waiting} if correlations else None
            print_json(
                {
                    "seed": self._world.seed,
                    "objects": len(self._world.objects),
                    "virtual_now": simulator.virtual_now,
                    **counts.as_json(),
                    "correlations": written,
                    "checked": self.check is not None and not counts.lost,
                    "sentences": told,
                }
            )
            return
        statuses = ", ".join(f"{count} x {status or 'no answer'}" for status, count in sorted(counts.statuses.items()))
        console.print(f"{counts.attempts} attempts: {statuses or 'none'}", markup=False, soft_wrap=True)
        console.print(
            f"{counts.delivered} of {counts.deliverable} events delivered, {len(counts.lost)} gave up,"
            f" {counts.pending} pending, {counts.withheld} withheld",
            markup=False,
            soft_wrap=True,
        )
        if correlations is not None:
            console.print(f"{correlations.written} correlations written, {correlations.waiting} waiting", markup=False)
        for sentence in told:
            console.print(sentence, markup=False, soft_wrap=True)
        if self.check is not None and not self._sentences:
            console.print("the database holds what must have come of it")
