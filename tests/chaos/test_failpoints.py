"""A process dies at each commit boundary under load: its successor ends with exact balances and effects.

They run in `make chaos`; in `make test` the road dies at one of each stage.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tallyhook.failpoint_arming import deaths_in
from tallyhook.failpoints import Failpoint
from tallyhook.gateway.signing import SigningKey
from tests.chaos.ending import audit, check_effects, check_load
from tests.chaos.gateway import Gateway
from tests.chaos.load import Correlator, make_load
from tests.chaos.mortals import FAILPOINTS, die_at, stage_of, variables
from tests.running import RunningPipeline

OBJECTS, LATE_BY, RATE_A_SECOND = 30, 60, 120
DEATH_SECONDS, BACK_SECONDS, END_SECONDS = 60.0, 60.0, 90.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where failpoints are armed and deaths are noted."""
    return tmp_path_factory.mktemp("failpoints")


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[RunningPipeline]:
    """One pipeline for all: each test has objects and users of its own."""
    with RunningPipeline(tmp_path_factory.mktemp("mortal") / "state", **variables(folder)) as running:
        yield running


@pytest.mark.chaos
@pytest.mark.timeout(400)
@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_a_death_at_a_commit_boundary(pipeline: RunningPipeline, folder: Path, failpoint: Failpoint) -> None:
    """kill -9 there once, under load; the supervisor starts another one, and nothing is lost, doubled or regressed."""
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")
    load, stage, before = make_load(seed, OBJECTS, late_by=LATE_BY), stage_of(failpoint), pipeline.ready
    key = SigningKey.from_text(before["signing_key"])
    gateway = Gateway(urlsplit(before["ingress_url"]).netloc, key, RATE_A_SECOND)
    correlator = Correlator(pipeline, load, lambda: gateway.sent / len(load.deliveries))
    gateway.start(load.deliveries)
    correlator.start()
    chance = random.Random(seed)
    back = die_at(pipeline, folder, failpoint, chance, death_seconds=DEATH_SECONDS, back_seconds=BACK_SECONDS)
    print(f"back after {back:.1f} s")
    gateway.join(END_SECONDS)
    correlator.join(END_SECONDS)
    assert not correlator.is_alive()
    assert deaths_in(folder)[failpoint] == 1
    check_load(pipeline, load, END_SECONDS)
    check_effects(pipeline, END_SECONDS)
    assert audit(pipeline) == []
    others = {unit: pid for unit, pid in pipeline.ready["pids"].items() if unit != stage}
    assert others == {unit: pid for unit, pid in before["pids"].items() if unit != stage}
