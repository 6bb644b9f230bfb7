"""A process dies at each commit boundary under load: its successor ends with exact balances and effects.

They run in `make chaos`; in `make test` the road dies at one of each stage.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallyhook.failpoint_arming import deaths_in
from tallyhook.failpoints import Failpoint
from tests.chaos.load import make_load
from tests.chaos.mortals import FAILPOINTS, die_at, stage_of, variables
from tests.chaos.posting import check_all, posted
from tests.running import RunningPipeline

OBJECTS, LATE_BY, RATE_A_SECOND = 30, 60, 120
DEATH_SECONDS, BACK_SECONDS = 60.0, 60.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where failpoints are armed and deaths are noted."""
    return tmp_path_factory.mktemp("failpoints")


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[RunningPipeline]:
    """One pipeline for all: each test has objects and users of its own. What all left is looked at in the end."""
    with RunningPipeline(tmp_path_factory.mktemp("mortal") / "state", **variables(folder)) as running:
        yield running
        check_all(running)


@pytest.mark.chaos
@pytest.mark.timeout(400)
@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_a_death_at_a_commit_boundary(pipeline: RunningPipeline, folder: Path, failpoint: Failpoint, seed: int) -> None:
    """kill -9 there once, under load; the supervisor starts another one, and nothing is lost, doubled or regressed."""
    stage, before = stage_of(failpoint), pipeline.ready
    with posted(pipeline, make_load(seed, OBJECTS, late_by=LATE_BY), RATE_A_SECOND):
        back = die_at(
            pipeline,
            folder,
            failpoint,
            random.Random(seed),
            death_seconds=DEATH_SECONDS,
            back_seconds=BACK_SECONDS,
        )
        print(f"back after {back:.1f} s")
    assert deaths_in(folder)[failpoint] == 1
    others = {unit: pid for unit, pid in pipeline.ready["pids"].items() if unit != stage}
    assert others == {unit: pid for unit, pid in before["pids"].items() if unit != stage}
