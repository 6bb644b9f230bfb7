"""The worker process on real Kafka and PostgreSQL: its start, its work, its end."""

import signal

from tallyhook.operations import topics
from tests.integration.sinks.balances import applied, lives, sound
from tests.integration.sinks.conftest import Road
from tests.integration.sinks.deliveries import deposit
from tests.integration.sinks.running import Running, until


def test_what_is_published_is_applied_and_sigterm_ends_cleanly(road: Road, stage: Running) -> None:
    """Each deposit is credited once; SIGTERM ends with 0 and leaves the positions where the topic ends."""
    worker = stage.worker()
    stage.publish(*lives(road, 40))
    until(lambda: applied(road) == 80, stage.workers)
    until(lambda: not worker.reasons(), stage.workers)
    assert worker.page("livez")[0] == 200
    assert worker.metric("tallyhook_sink_verdicts_total") == 80
    assert worker.end() == 0
    sound(road, 40)
    assert road.one("SELECT sum(next_offset) FROM sink_offsets WHERE topic = %s", (stage.names.state_changes,)) == 80


def test_kills_under_load_lose_and_double_nothing(road: Road, stage: Running) -> None:
    """Two workers, killed in turn while events come: everything is applied once, in order."""
    stage.worker()
    stage.worker()
    for number in range(2):
        stage.publish(*lives(road, 150, number * 150))
        already = applied(road)
        until(lambda: applied(road) > already, stage.workers)  # noqa: B023  asked within the turn
        victim = stage.workers[-2]
        victim.end(signal.SIGKILL)
        stage.worker()
    until(lambda: applied(road) == 600, stage.workers)
    sound(road, 300)


def test_a_worker_waits_for_what_is_not_there_yet(road: Road, stage: Running) -> None:
    """Unrecorded topics and an older schema are told by name; once they are right it starts by itself."""
    road.execute("DELETE FROM installed_topics WHERE topic = %s RETURNING 1", (stage.names.state_changes,))
    worker = stage.worker()
    until(lambda: "tallyhook topics apply" in worker.reasons(), stage.workers)
    topics.apply(stage.settings)
    until(lambda: not worker.reasons(), stage.workers)
    newest = road.one("SELECT version_num FROM alembic_version")
    road.execute("UPDATE alembic_version SET version_num = '0000'")
    second = stage.worker()
    until(lambda: "tallyhook migrate" in second.reasons(), stage.workers)
    road.execute("UPDATE alembic_version SET version_num = %s", (newest,))
    until(lambda: not second.reasons(), stage.workers)


def test_a_partition_count_that_differs_is_refused(stage: Running) -> None:
    """A key would move to another partition."""
    worker = stage.worker(TALLYHOOK_PARTITIONS="5")
    until(lambda: "has 4 partitions" in worker.reasons() and "TALLYHOOK_PARTITIONS" in worker.reasons(), stage.workers)


def test_too_many_poison_events_stop_the_worker(road: Road, stage: Running) -> None:
    """/readyz says so and names the way out; the process lives; a new one with a higher limit goes on."""
    worker = stage.worker(TALLYHOOK_SINK_QUARANTINE_LIMIT="3")
    road.correlate("dep-1")
    bad = [deposit(f"bad-{v}", "dep-1", v, "settled", fee_total_minor=1) for v in range(10)]
    stage.publish(*bad, deposit("good", "dep-1", 99, "settled"))
    until(lambda: "TALLYHOOK_SINK_QUARANTINE_LIMIT" in worker.reasons(), stage.workers)
    assert worker.page("livez")[0] == 200
    assert road.one("SELECT count(*) FROM quarantined_events") == 4
    assert worker.end() == 0
    stage.worker(TALLYHOOK_SINK_QUARANTINE_LIMIT="100")
    until(lambda: applied(road) == 1, stage.workers)
    assert road.one("SELECT count(*) FROM quarantined_events") == 10


def test_wrong_settings_end_with_2(stage: Running) -> None:
    """A worker without a database says so and ends."""
    worker = stage.worker(TALLYHOOK_DATABASE_URL="")
    assert worker.process.wait(30) == 2
    assert "TALLYHOOK_DATABASE_URL is not set" in worker.log()
