"""A database that refuses, hangs up or is away is waited out: no event is at fault, and nothing is set aside."""

import threading
import time
from itertools import pairwise
from urllib.parse import urlsplit

from sinks.loop import RETRY_SECONDS
from tests.integration.sinks.balances import applied, lives, sound
from tests.integration.sinks.conftest import Road
from tests.integration.sinks.cutting import CuttableWay
from tests.integration.sinks.deliveries import deposit, now_text
from tests.integration.sinks.running import Running, until


def test_sessions_that_are_ended_under_load(road: Road, stage: Running) -> None:
    """The worker connects anew, claims anew and goes on; nothing is set aside."""
    worker = stage.worker()
    until(lambda: not worker.reasons(), stage.workers)
    events = lives(road, 400)
    publisher = threading.Thread(target=lambda: stage.publish(*events))
    publisher.start()
    for _ in range(8):
        already = applied(road)
        road.execute(
            "SELECT pg_terminate_backend(owner_pid) FROM sink_offsets WHERE topic = %s LIMIT 1",
            (stage.names.state_changes,),
        )
        until(lambda: applied(road) > already or applied(road) == 800, stage.workers)  # noqa: B023  within the turn
    publisher.join()
    until(lambda: applied(road) == 800, stage.workers)
    sound(road, 400)
    # A session that was ended while idle is missed by the next look at what waits.
    until(lambda: bool(worker.told()), stage.workers)
    assert {line["event"] for line in worker.told()} == {"cannot go on"}
    assert worker.metric("tallyhook_sink_fence_lost_total") == 0


def test_a_database_that_only_reads_is_waited_out(road: Road, stage: Running) -> None:
    """No event is at fault: nothing is set aside, and once it is writable the worker goes on by itself."""
    worker = stage.worker()
    stage.publish(*lives(road, 10))
    until(lambda: applied(road) == 20, stage.workers)
    events = lives(road, 10, 10)
    # Only this installation's sink is refused: other tests share the server.
    road.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'cannot write' USING ERRCODE = '25006'; END $$"
    )
    road.execute("CREATE TRIGGER refuse BEFORE UPDATE ON sink_offsets EXECUTE FUNCTION refuse()")
    stage.publish(*events)
    until(lambda: "cannot write" in worker.reasons(), stage.workers)
    assert worker.page("livez")[0] == 200
    road.execute("DROP TRIGGER refuse ON sink_offsets")
    until(lambda: applied(road) == 40, stage.workers)
    until(lambda: not worker.reasons(), stage.workers)
    sound(road, 20)


def test_a_batch_that_fails_by_our_fault_is_tried_more_and_more_rarely(road: Road, stage: Running) -> None:
    """Turns that find nothing between two tries neither hasten the next one nor say that all is well."""
    worker = stage.worker()
    until(lambda: not worker.reasons(), stage.workers)
    road.execute("ALTER TABLE pg_outbox RENAME COLUMN causation_id TO moved")
    road.correlate("dep-1")
    # The first record of its partition: the client needs some turns that find nothing to fetch it anew.
    stage.publish(deposit("evt-1", "dep-1", 1, "settled"), partition=0)
    until(lambda: "causation_id" in worker.reasons(), stage.workers)

    tries = [time.monotonic()]
    claims = road.one("SELECT max(epoch) FROM sink_offsets WHERE topic = %s", (stage.names.state_changes,))

    def tried(times: int) -> bool:
        nonlocal claims
        assert worker.page("readyz")[0] == 503
        found = road.one("SELECT max(epoch) FROM sink_offsets WHERE topic = %s", (stage.names.state_changes,))
        if found > claims:
            claims = found
            tries.append(time.monotonic())
        return len(tries) > times

    until(lambda: tried(len(RETRY_SECONDS) + 2), stage.workers)
    between = [later - earlier for earlier, later in pairwise(tries)]
    # The test sees each claim a little late, so a gap may look shorter than the wait was.
    assert all(gap > RETRY_SECONDS[-1] - 0.25 for gap in between[-3:]), between
    assert [line["event"] for line in worker.told()] == ["cannot go on"]
    assert worker.page("livez")[0] == 200

    road.execute("ALTER TABLE pg_outbox RENAME COLUMN moved TO causation_id")
    until(lambda: applied(road) == 1, stage.workers)
    until(lambda: not worker.reasons(), stage.workers)
    sound(road, 1)


def test_only_the_owner_of_what_fails_is_not_ready(road: Road, stage: Running) -> None:
    """Of two workers the other one is ready, until it takes the partition over; nothing is lost by that."""
    first = stage.worker()
    until(lambda: not first.reasons(), stage.workers)
    road.execute("ALTER TABLE pg_outbox RENAME COLUMN causation_id TO moved")
    road.correlate("dep-1")
    stage.publish(deposit("evt-1", "dep-1", 1, "settled"), partition=0)
    until(lambda: "causation_id" in first.reasons(), stage.workers)
    second = stage.worker()
    owners = "SELECT count(DISTINCT owner_pid) FROM sink_offsets WHERE topic = %s"
    until(lambda: road.one(owners, (stage.names.state_changes,)) == 2, stage.workers)
    until(lambda: sorted(bool(worker.reasons()) for worker in stage.workers) == [False, True], stage.workers)
    failing = next(worker for worker in stage.workers if "causation_id" in worker.reasons())
    failing.end()
    left = second if failing is first else first
    until(lambda: "causation_id" in left.reasons(), stage.workers)
    road.execute("ALTER TABLE pg_outbox RENAME COLUMN moved TO causation_id")
    until(lambda: not left.reasons(), stage.workers)
    sound(road, 1)


def test_a_database_that_is_away_is_waited_out(road: Road, stage: Running, database_url: str) -> None:
    """/livez stays 200, /readyz says why, the process stays, and it goes on by itself."""
    parts = urlsplit(database_url)
    way = CuttableWay(parts.hostname or "", parts.port or 5432)
    url = database_url.replace(f":{parts.port}/", f":{way.port}/")
    worker = stage.worker(TALLYHOOK_DATABASE_URL=url)
    stage.publish(*lives(road, 10))
    until(lambda: applied(road) == 20, stage.workers)
    way.cut()
    stage.publish(*lives(road, 10, 10))
    until(lambda: "state-changes: " in worker.reasons(), stage.workers)
    assert worker.page("livez")[0] == 200
    way.mend()
    until(lambda: applied(road) == 40, stage.workers)
    until(lambda: not worker.reasons(), stage.workers)
    sound(road, 20)
    assert worker.process.poll() is None
    way.close()


def test_lag_is_shown_while_nothing_can_be_written(road: Road, stage: Running) -> None:
    """Events and seconds rise while the database refuses, and fall back to nothing."""
    worker = stage.worker()
    until(lambda: not worker.reasons(), stage.workers)
    road.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'cannot write' USING ERRCODE = '53100'; END $$"
    )
    road.execute("CREATE TRIGGER refuse BEFORE UPDATE OF next_offset ON sink_offsets EXECUTE FUNCTION refuse()")
    event = deposit("evt-1", "dep-1", 1, "open")
    assert event.received_at < now_text()
    stage.publish(event)
    until(lambda: worker.metric("tallyhook_sink_lag_seconds") > 1, stage.workers)
    until(lambda: worker.metric("tallyhook_sink_lag_events") == 1, stage.workers)
    road.execute("DROP TRIGGER refuse ON sink_offsets")
    until(lambda: worker.metric("tallyhook_sink_lag_events") == 0, stage.workers)
    until(lambda: worker.metric("tallyhook_sink_lag_seconds") == 0, stage.workers)
