"""Records that wait behind a sink that does not move."""

from tallyhook.operations.doctor.broker import Topic
from tallyhook.operations.doctor.database import SinkPosition
from tallyhook.operations.doctor.positions import examine_idle, waiting

TOPICS = [Topic("t.state-changes", "id", 3, 1), Topic("t.dead-letters", "id", 1, 1)]
HIGHS = {("t.state-changes", 0): 10, ("t.state-changes", 1): 7, ("t.state-changes", 2): 4, ("t.dead-letters", 0): 0}


def test_records_wait_where_the_position_lies_below_the_end() -> None:
    """A partition that was never applied begins at 0; one that is at its end waits for nothing."""
    stored = [SinkPosition("t.state-changes", "id", 0, 10), SinkPosition("t.state-changes", "id", 1, 3)]
    assert waiting(TOPICS, stored, HIGHS) == {("t.state-changes", 1): 3, ("t.state-changes", 2): 0}


def test_one_finding_a_topic() -> None:
    """It counts what waits and names the partitions; nothing still is nothing to tell."""
    (found,) = examine_idle({("t.state-changes", 1): 3, ("t.state-changes", 2): 0}, HIGHS, 3.0)
    assert (found.id, found.severity, found.subject) == ("sink_idle", "warning", "partitions 1, 2 of t.state-changes")
    assert found.found == "8 records wait, and nothing was applied for 3 s"
    assert list(examine_idle({}, HIGHS, 3.0)) == []
