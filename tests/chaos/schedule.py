"""The deaths of a long run: for each unit its own list, met one after the other while the other units meet theirs."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tallyhook.failpoints import Failpoint
from tests.chaos.mortals import AT_START, FAILPOINTS, await_return, die_at, kill_now, stage_of
from tests.running import RunningPipeline, await_true

STAGES, SERVERS = ("ingress", "stream", "sink", "relay"), ("kafka", "postgres")
DEATH_SECONDS, BACK_SECONDS = 240.0, 180.0
"""So long, because what a stage depends on dies as well."""
PAUSES_SECONDS, SERVER_PAUSES_SECONDS = (0.0, 3.0), (30.0, 90.0)
"""Between two deaths of a unit. A server that is always just starting would let nobody reach a failpoint."""


@dataclass
class Deaths:
    """What died and how long it took to come back.

    Args:
        at_random: kills by unit; deaths at failpoints are counted by their folder.
        back_seconds: by unit, from the death to the readiness of the successor.
    """

    at_random: Counter[str] = field(default_factory=Counter)
    back_seconds: dict[str, list[float]] = field(default_factory=dict)


class Schedule:
    """Lets every unit of a pipeline die, all units at once and each in its own order; overlapping is wanted.

    Args:
        folder: where failpoints are armed.
        each: deaths at each failpoint.
        stage_deaths: deaths of each stage; those that are not at failpoints are kills at random.
        servers: kills of each server.
        flowing: whether events still come; without them nobody reaches a failpoint.
    """

    def __init__(
        self,
        pipeline: RunningPipeline,
        folder: Path,
        chance: random.Random,
        *,
        each: int,
        stage_deaths: int,
        servers: int,
        flowing: Callable[[], bool],
    ) -> None:
        self._pipeline, self._folder, self._flowing = pipeline, folder, flowing
        self.deaths = Deaths(back_seconds={unit: [] for unit in (*STAGES, *SERVERS)})
        self._lists: dict[str, list[Failpoint | None]] = {}
        self._chances: dict[str, random.Random] = {}
        for unit in STAGES:
            own = [name for name in FAILPOINTS if stage_of(name) == unit] * each
            self._lists[unit] = [*own, *([None] * (stage_deaths - len(own)))]
        for unit in SERVERS:
            self._lists[unit] = [None] * servers
        for unit, planned in self._lists.items():
            chance.shuffle(planned)
            self._chances[unit] = random.Random(chance.random())
        self._given_up = threading.Event()

    def run(self) -> None:
        """Returns when everything died as often as planned and came back; raises what a unit's list met."""
        with ThreadPoolExecutor(len(self._lists)) as pool:
            for outcome in [pool.submit(self._go_through, unit) for unit in self._lists]:
                outcome.result()

    def _go_through(self, unit: str) -> None:
        chance = self._chances[unit]
        for failpoint in self._lists[unit]:
            # The pauses are the schedule: kills shall meet the units in every state, not only just started.
            if self._given_up.wait(chance.uniform(*(SERVER_PAUSES_SECONDS if unit in SERVERS else PAUSES_SECONDS))):
                return
            try:
                assert self._flowing(), f"no events are left for {failpoint or 'a kill'} of {unit}"
                self.deaths.back_seconds[unit].append(self._die(unit, failpoint, chance))
            except BaseException as failure:
                failure.add_note(f"not ready: {self._pipeline.not_ready()}")
                self._given_up.set()
                raise
            if failpoint is None or failpoint in AT_START:
                self.deaths.at_random[unit] += 1

    def _die(self, unit: str, failpoint: Failpoint | None, chance: random.Random) -> float:
        """One death and the return; gives the seconds that this took."""
        if failpoint is not None:
            return die_at(
                self._pipeline,
                self._folder,
                failpoint,
                chance,
                death_seconds=DEATH_SECONDS,
                back_seconds=BACK_SECONDS,
            )
        before = self._pipeline.ready["pids"][unit]
        await_true(lambda: kill_now(self._pipeline, unit), BACK_SECONDS, f"a {unit} to kill")
        return await_return(self._pipeline, unit, before, BACK_SECONDS)
