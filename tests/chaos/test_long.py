"""The long chaos: every failpoint, every process and both servers, again and again and at the same time."""

import random
import statistics
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tallyhook.failpoint_arming import deaths_in
from tallyhook.gateway.signing import SigningKey
from tests.chaos.ending import audit, check_effects, check_load
from tests.chaos.gateway import Gateway
from tests.chaos.load import Correlator, make_load
from tests.chaos.mortals import FAILPOINTS, variables
from tests.chaos.schedule import SERVERS, STAGES, Schedule
from tests.running import RunningPipeline

OBJECTS, LATE_BY, RATE_A_SECOND = 13_500, 3_000, 110
EVENTS_MIN, DEATHS_MIN = 100_000, 200
EACH, PER_STAGE, PER_SERVER = 2, 50, 6
REST_SECONDS, END_SECONDS = 900.0, 300.0


@pytest.mark.chaos
@pytest.mark.timeout(2400)
def test_two_hundred_deaths(tmp_path: Path) -> None:
    """100,000 events, late and repeated, through more than 200 deaths: exact ends, each effect once, a clean audit."""
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")
    load = make_load(seed, OBJECTS, late_by=LATE_BY)
    assert len(load.world.events) >= EVENTS_MIN
    assert len(load.deliveries) > len(load.world.events) + len(load.letters)
    folder = tmp_path / "failpoints"
    folder.mkdir()
    with RunningPipeline(tmp_path / "state", **variables(folder)) as pipeline:
        ready = pipeline.ready
        key = SigningKey.from_text(ready["signing_key"])
        gateway = Gateway(urlsplit(ready["ingress_url"]).netloc, key, RATE_A_SECOND)
        correlator = Correlator(pipeline, load, lambda: gateway.sent / len(load.deliveries))
        schedule = Schedule(
            pipeline,
            folder,
            random.Random(seed),
            each=EACH,
            stage_deaths=PER_STAGE,
            servers=PER_SERVER,
            flowing=lambda: gateway.sent < len(load.deliveries),
        )
        gateway.start(load.deliveries)
        correlator.start()
        try:
            schedule.run()
        finally:
            _tell(schedule, folder, gateway)
        print(f"{gateway.sent} of {len(load.deliveries)} deliveries were posted when the last death was over")
        gateway.hurry()
        gateway.join(REST_SECONDS)
        correlator.join(REST_SECONDS)
        assert not correlator.is_alive()
        check_load(pipeline, load, END_SECONDS)
        check_effects(pipeline, END_SECONDS)
        assert audit(pipeline) == []
    at_failpoints, at_random = deaths_in(folder), schedule.deaths.at_random
    assert dict(at_failpoints) == dict.fromkeys(FAILPOINTS, EACH)
    assert min(at_random[unit] for unit in STAGES) > 0
    assert {unit: at_random[unit] for unit in SERVERS} == dict.fromkeys(SERVERS, PER_SERVER)
    assert at_failpoints.total() + at_random.total() >= DEATHS_MIN


def _tell(schedule: Schedule, folder: Path, gateway: Gateway) -> None:
    at_failpoints, deaths = deaths_in(folder), schedule.deaths
    print(f"{at_failpoints.total()} deaths at failpoints, {deaths.at_random.total()} at random")
    for name in FAILPOINTS:
        print(f"  {name:28} {at_failpoints[name]:3}")
    for unit, seconds in deaths.back_seconds.items():
        middle, longest = statistics.median(seconds or [0]), max(seconds, default=0)
        print(f"  {unit:28} {deaths.at_random[unit]:3} at random; back after {middle:.1f} s, at most {longest:.1f} s")
    print("answers:", dict(gateway.answers))
