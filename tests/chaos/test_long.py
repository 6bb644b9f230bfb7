"""The long chaos: every failpoint, every process and both servers, again and again and at the same time."""

import random
import statistics
from pathlib import Path

import pytest

from tallyhook.failpoint_arming import deaths_in
from tests.chaos.company import company
from tests.chaos.gateway import Gateway
from tests.chaos.load import make_load
from tests.chaos.mortals import FAILPOINTS, variables
from tests.chaos.posting import check_all, posted
from tests.chaos.schedule import SERVERS, STAGES, Schedule
from tests.running import RunningPipeline

OBJECTS, LATE_BY, RATE_A_SECOND = 11_400, 3_000, 85
DELIVERIES_MIN, DEATHS_MIN, LIVES_MIN = 100_000, 200, 8
EACH, PER_STAGE, PER_SERVER = 1, 42, 5
END_SECONDS = 900.0


@pytest.mark.chaos
@pytest.mark.timeout(2100)
def test_two_hundred_deaths(tmp_path: Path, seed: int) -> None:
    """100,000 deliveries, late and repeated, through 200 deaths and more while workers come and go: exact ends, each
    effect once, a clean audit."""
    load = make_load(seed, OBJECTS, late_by=LATE_BY)
    assert len(load.deliveries) >= DELIVERIES_MIN
    assert len(load.deliveries) > len(load.world.events) + len(load.letters)
    folder = tmp_path / "failpoints"
    folder.mkdir()
    chance = random.Random(seed)
    with RunningPipeline(tmp_path / "state", **variables(folder)) as pipeline:
        with posted(pipeline, load, RATE_A_SECOND, end_seconds=END_SECONDS) as gateway:
            schedule = Schedule(
                pipeline,
                folder,
                chance,
                each=EACH,
                stage_deaths=PER_STAGE,
                servers=PER_SERVER,
                flowing=lambda: gateway.sent < len(load.deliveries),
            )
            with company(pipeline, tmp_path, chance) as others:
                try:
                    schedule.run()
                finally:
                    _tell(schedule, folder, gateway)
            print(f"{gateway.sent} of {len(load.deliveries)} deliveries were posted when the last death was over")
        check_all(pipeline)
    at_failpoints, at_random = deaths_in(folder), schedule.deaths.at_random
    assert dict(at_failpoints) == dict.fromkeys(FAILPOINTS, EACH)
    assert min(at_random[unit] for unit in STAGES) > 0
    assert {unit: at_random[unit] for unit in SERVERS} == dict.fromkeys(SERVERS, PER_SERVER)
    assert at_failpoints.total() + at_random.total() + sum(one.kills for one in others) >= DEATHS_MIN
    assert min(one.lives for one in others) >= LIVES_MIN


def _tell(schedule: Schedule, folder: Path, gateway: Gateway) -> None:
    at_failpoints, deaths = deaths_in(folder), schedule.deaths
    print(f"{at_failpoints.total()} deaths at failpoints, {deaths.at_random.total()} at random")
    for unit, seconds in deaths.back_seconds.items():
        middle, longest = statistics.median(seconds or [0]), max(seconds, default=0)
        print(f"  {unit:28} {deaths.at_random[unit]:3} at random; back after {middle:.1f} s, at most {longest:.1f} s")
    print("answers:", dict(gateway.answers))
