"""PostgreSQL has no byte left to write: the sink waits and says so, sets nothing aside, and goes on by itself."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.chaos.load import make_load
from tests.chaos.posting import check_all, posted
from tests.chaos.small_disk import NotPermitted, SmallDisk, small_disk
from tests.chaos.tally import TALLY
from tests.running import RunningPipeline, await_true

OBJECTS, LATE_BY, RATE_A_SECOND = 400, 300, 150
MEGABYTES = 320
TIMES, FULL_SECONDS, BACK_SECONDS = 2, 60.0, 120.0


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    """Mounted for this test alone."""
    try:
        with small_disk(MEGABYTES) as made:
            yield made
    except (NotPermitted, FileNotFoundError) as failure:
        pytest.skip(f"a file system cannot be mounted: {failure}")


def quarantined(pipeline: RunningPipeline) -> int:
    """How many events the sink set aside; a database that is just starting is asked again."""
    found: list[int] = []

    def ask() -> bool:
        try:
            with pipeline.connect() as connection:
                query = f"SELECT count(*) FROM {pipeline.ready['schema']}.quarantined_events WHERE stage = 'sink'"
                found.extend(number for (number,) in connection.execute(query.encode()))
        except psycopg.OperationalError:
            return False
        return True

    await_true(ask, BACK_SECONDS, "the database to answer")
    return found[0]


@pytest.mark.chaos
@pytest.mark.timeout(500)
def test_a_database_without_a_byte_left(disk: SmallDisk, tmp_path: Path, seed: int) -> None:
    """Full under load, twice: /readyz says why, the door still takes events, and with room again all is processed."""
    disk.database_in(tmp_path / "state")
    load = make_load(seed, OBJECTS, late_by=LATE_BY)
    with RunningPipeline(tmp_path / "state") as pipeline:
        with posted(pipeline, load, RATE_A_SECOND) as gateway:
            for _ in range(TIMES):
                passed = gateway.sent
                await_true(lambda p=passed: gateway.sent > p + 100, FULL_SECONDS, "traffic")  # type: ignore[misc]
                disk.fill()
                await_true(lambda: "sink" in pipeline.not_ready(), FULL_SECONDS, "the sink to notice the full disk")
                print("the sink says:", pipeline.not_ready()["sink"])
                passed = gateway.sent
                await_true(lambda p=passed: gateway.sent > p + 100, FULL_SECONDS, "traffic all the same")  # type: ignore[misc]
                assert not pipeline.answers("sink")
                disk.free()
                TALLY.disturbances["full disk under PostgreSQL"] += 1
                await_true(lambda: pipeline.answers("sink"), BACK_SECONDS, "the sink to go on")
                assert quarantined(pipeline) == 0
            assert gateway.sent < len(load.deliveries)
        assert quarantined(pipeline) == 0
        check_all(pipeline)
