"""A process freezes in the middle of its work, others take the work over, and then it wakes up."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tallyhook.failpoint_arming import arm_in
from tallyhook.failpoints import Failpoint
from tests.chaos.companions import Companion
from tests.chaos.load import make_load
from tests.chaos.mortals import await_death, kill_now, stage_of, variables
from tests.chaos.posting import check_all, posted
from tests.chaos.tally import TALLY
from tests.running import RunningPipeline, await_true

OBJECTS, LATE_BY, RATE_A_SECOND = 60, 80, 120
PATIENCE_SECONDS = 60.0
REPLACED = 70
POINTS: tuple[Failpoint, ...] = (
    "stream.outputs_sent",
    "sink.copying",
    "sink.offset_advanced",
    "relay.produced",
    "relay.prepared",
)
"""Within a batch of the stream; within a COPY and before the COMMIT; with a Kafka transaction open."""


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPipeline]:
    """One pipeline for all, whose sink does not wait long for a frozen owner; each test looks at everything."""
    folder = tmp_path_factory.mktemp("zombies")
    own = variables(folder) | {"TALLYHOOK_SINK_CLAIM_WAIT_SECONDS": "1"}
    with RunningPipeline(folder / "state", **own) as running:
        yield running


@pytest.mark.chaos
@pytest.mark.timeout(400)
@pytest.mark.parametrize("point", POINTS)
def test_frozen_at_work_and_awake_again(pipeline: RunningPipeline, tmp_path: Path, point: Failpoint, seed: int) -> None:
    """While it stands still others process everything; awake, it adds nothing and finds its place or its end."""
    stage, folder = stage_of(point), tmp_path / "failpoints"
    folder.mkdir()
    with Companion(pipeline, stage, tmp_path / f"{stage}.log", variables(folder)) as zombie:
        zombie.await_ready()
        if stage == "relay":
            _take_the_lease(pipeline, zombie)
        with posted(pipeline, make_load(seed, OBJECTS, late_by=LATE_BY), RATE_A_SECOND):
            arm_in(folder, point, "1:STOP")
            await_death(folder, point, PATIENCE_SECONDS)
            await_true(zombie.stands_still, PATIENCE_SECONDS, f"the {stage} to stand still")
        check_all(pipeline)
        assert zombie.stands_still()
        zombie.thaw()
        TALLY.disturbances[f"{stage} frozen and awake again"] += 1
        if stage == "relay":
            assert zombie.process.wait(PATIENCE_SECONDS) == REPLACED
        with posted(pipeline, make_load(seed + 1, OBJECTS, late_by=LATE_BY), RATE_A_SECOND):
            pass
        if stage == "sink":
            assert "another worker took over" in zombie.told()
            await_true(zombie.is_ready, PATIENCE_SECONDS, "the sink to serve again")
        if stage == "stream" and zombie.process.poll() is None:
            await_true(lambda: zombie.process.poll() is not None or zombie.is_ready(), PATIENCE_SECONDS, "the stream")
        if zombie.process.poll() is None:
            assert zombie.end() == 0
    check_all(pipeline)


def _take_the_lease(pipeline: RunningPipeline, relay: Companion) -> None:
    """Kills the pipeline's relay until the other one, which stands by, has the lease."""
    active = "tallyhook_relay_active"
    for _ in range(5):
        before = pipeline.ready["pids"]["relay"]
        await_true(lambda: kill_now(pipeline, "relay"), PATIENCE_SECONDS, "a relay to kill")
        await_true(lambda b=before: pipeline.ready["pids"]["relay"] not in (b, None), PATIENCE_SECONDS, "a new relay")  # type: ignore[misc]
        await_true(
            lambda: relay.metric(active) == 1 or pipeline.answers("relay"), PATIENCE_SECONDS, "a relay with the lease"
        )
        try:
            await_true(lambda: relay.metric(active) == 1, 10, "the lease")
        except AssertionError:
            continue
        return
    raise AssertionError("the other relay never had the lease")
