"""A sink whose way to PostgreSQL is cut around a COMMIT and within a COPY goes on, and applies everything once."""

import random
from pathlib import Path

import pytest

from tests.chaos.companions import Companion
from tests.chaos.load import make_load
from tests.chaos.mortals import kill_now
from tests.chaos.posting import check_all, posted
from tests.chaos.tally import TALLY
from tests.chaos.wire import CUTS, through, way_to
from tests.running import RunningPipeline, await_true

OBJECTS, LATE_BY, RATE_A_SECOND = 150, 200, 60
CUTS_EACH, CUT_SECONDS = 6, 60.0


@pytest.mark.chaos
@pytest.mark.timeout(400)
def test_connections_cut_around_the_commit(tmp_path: Path, seed: int) -> None:
    """A COMMIT that was carried out and not confirmed, one that never arrived, half a COPY: no loss, no double."""
    load, chance = make_load(seed, OBJECTS, late_by=LATE_BY), random.Random(seed)
    cuts = [cut for cut in CUTS for _ in range(CUTS_EACH)]
    chance.shuffle(cuts)
    with (
        RunningPipeline(tmp_path / "state") as pipeline,
        way_to(pipeline.ready["database_url"]) as way,
        Companion(
            pipeline,
            "sink",
            tmp_path / "sink.log",
            {"TALLYHOOK_DATABASE_URL": through(way, pipeline.ready["database_url"])},
        ) as sink,
    ):
        sink.await_ready()
        with posted(pipeline, load, RATE_A_SECOND):
            for cut in cuts:
                before = way.cuts[cut]
                way.plan([cut])
                await_true(lambda c=cut, b=before: way.cuts[c] > b, CUT_SECONDS, f"a cut: {cut}")  # type: ignore[misc]
            assert kill_now(pipeline, "sink")  # its partitions go to the one behind the cut way
        TALLY.disturbances.update(way.cuts)
        assert way.cuts == dict.fromkeys(CUTS, CUTS_EACH)
        await_true(sink.is_ready, CUT_SECONDS, "the sink behind the way to be ready")
        assert "cannot go on" in sink.told()
        with pipeline.connect() as connection:
            query = f"SELECT count(*) FROM {pipeline.ready['schema']}.quarantined_events WHERE stage = 'sink'"
            assert connection.execute(query.encode()).fetchone() == (0,)
        check_all(pipeline)
        assert sink.end() == 0
