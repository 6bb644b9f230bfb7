"""Workers that come and go beside a pipeline's own while it is under load: each coming and going is a rebalance."""

import random
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tests.chaos.companions import Companion
from tests.chaos.tally import TALLY
from tests.chaos.wire import CUTS, CuttingWay, through, way_to
from tests.running import RunningPipeline

APART_SECONDS, TOGETHER_SECONDS = (5.0, 15.0), (6.0, 30.0)
END_SECONDS = 120.0
CUTS_A_LIFE = 3


class Company(threading.Thread):
    """One further worker of a stage, again and again: it stays a while and is killed, frozen and killed, or stopped.

    A sink comes by a way to PostgreSQL that is cut around its commits.

    Args:
        folder: for its log.
    """

    def __init__(self, pipeline: RunningPipeline, folder: Path, stage: str, chance: random.Random) -> None:
        super().__init__(name=f"company-{stage}", daemon=True)
        self._pipeline, self._stage, self._chance = pipeline, stage, chance
        self._log_path = folder / f"{stage}-beside.log"
        self._leaving = threading.Event()
        self.lives = self.kills = 0
        self.failure: BaseException | None = None

    def leave(self) -> None:
        """Ends the present life and the thread."""
        self._leaving.set()
        self.join(END_SECONDS)
        assert not self.is_alive()
        if self.failure is not None:
            raise self.failure

    def run(self) -> None:
        """Until it is told to leave."""
        try:
            database_url = str(self._pipeline.ready["database_url"])
            with way_to(database_url) if self._stage == "sink" else nullcontext() as way:
                own = {"TALLYHOOK_DATABASE_URL": through(way, database_url)} if way is not None else {}
                while not self._leaving.wait(self._chance.uniform(*APART_SECONDS)):
                    self._live(own, way)
                if way is not None:
                    TALLY.disturbances.update(way.cuts)
        except BaseException as failure:  # noqa: BLE001  the test's thread raises it when the company leaves
            self.failure = failure

    def _live(self, environment: Mapping[str, str], way: CuttingWay | None) -> None:
        """One life; what it depends on may be dead at the moment, so it is not waited for until it is ready."""
        with Companion(self._pipeline, self._stage, self._log_path, environment) as worker:
            if way is not None and not way.left:
                way.plan(self._chance.choices(CUTS, k=CUTS_A_LIFE))
            stay_seconds = self._chance.uniform(*TOGETHER_SECONDS)
            self._leaving.wait(stay_seconds)
            end = self._chance.choice(("kill", "kill", "stop", "freeze"))
            if worker.process.poll() is not None:
                TALLY.disturbances[f"{self._stage} beside the others ended itself"] += 1
            elif end == "stop":
                worker.end()
                TALLY.disturbances[f"{self._stage} beside the others stopped"] += 1
            else:
                if end == "freeze":
                    worker.process.send_signal(signal.SIGSTOP)
                    self._leaving.wait(stay_seconds)
                    worker.thaw()
                    self._leaving.wait(stay_seconds / 2)
                    TALLY.disturbances[f"{self._stage} beside the others frozen"] += 1
                worker.process.kill()
                TALLY.at_random[f"{self._stage} beside the others"] += 1
                self.kills += 1
        self.lives += 1


@contextmanager
def company(pipeline: RunningPipeline, folder: Path, chance: random.Random) -> Iterator[list[Company]]:
    """A further stream and a further sink come and go meanwhile; in the end both are gone."""
    both = [Company(pipeline, folder, stage, random.Random(chance.random())) for stage in ("stream", "sink")]
    for one in both:
        one.start()
    yield both
    for one in both:
        one.leave()
