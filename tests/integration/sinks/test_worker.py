"""The worker process on real Kafka and PostgreSQL."""

import json
import signal
import threading
from urllib.parse import urlsplit

from confluent_kafka import TopicPartition

from tallyhook import kafka
from tallyhook.operations import topics
from tests.integration.sinks.conftest import Road
from tests.integration.sinks.cutting import CuttableWay
from tests.integration.sinks.deliveries import Delivery, deposit, now_text
from tests.integration.sinks.running import Running, until


def applied(road: Road) -> int:
    """How many events are in the inbox."""
    return int(road.one("SELECT count(*) FROM pg_webhook_inbox"))


def sound(road: Road, deposits: int) -> None:
    """Each deposit credited once, the balances are the entries' sums, and the numbers have no gap."""
    assert road.one("SELECT count(*) FROM pg_user_balance_entries") == deposits
    assert (
        road.rows(
            "SELECT user_id FROM pg_user_balances FULL JOIN (SELECT user_id, sum(amount_minor) AS total"
            " FROM pg_user_balance_entries GROUP BY user_id) e USING (user_id)"
            " WHERE total IS DISTINCT FROM balance_minor"
        )
        == []
    )
    assert road.rows("SELECT partition FROM pg_outbox GROUP BY partition HAVING max(seq) + 1 <> count(*)") == []
    assert (
        road.rows("SELECT partition FROM pg_webhook_inbox GROUP BY partition HAVING max(arrival_seq) + 1 <> count(*)")
        == []
    )
    assert road.rows("SELECT * FROM quarantined_events") == []


def lives(road: Road, number: int, start: int = 0) -> list[Delivery]:
    """Two events for each of so many deposits of ten users, with their correlations."""
    keys = [f"dep-{n}" for n in range(start, start + number)]
    for n, key in enumerate(keys):
        road.correlate(key, user=f"usr-{n % 10}")
    return [deposit(f"{key}-{v}", key, v, status) for v, status in ((1, "open"), (2, "settled")) for key in keys]


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


def test_a_frozen_worker_wakes_up_and_writes_nothing(road: Road, stage: Running) -> None:
    """Another one takes its partitions over; when it goes on, its batch is refused and it joins anew."""
    frozen = stage.worker()
    stage.publish(*lives(road, 20))
    until(lambda: applied(road) == 40, stage.workers)
    frozen.process.send_signal(signal.SIGSTOP)
    stage.worker(TALLYHOOK_SINK_CLAIM_WAIT_SECONDS="1")
    stage.publish(*lives(road, 100, 20))
    until(lambda: applied(road) == 240, stage.workers)
    frozen.process.send_signal(signal.SIGCONT)
    stage.publish(*lives(road, 100, 120))
    until(lambda: applied(road) == 440, stage.workers)
    until(lambda: not frozen.reasons(), stage.workers)
    sound(road, 220)


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


def test_a_worker_waits_for_what_is_not_there_yet(road: Road, stage: Running) -> None:
    """Unrecorded topics and an older schema are told by name; once they are right it starts by itself."""
    road.execute("DELETE FROM installed_topics WHERE topic = %s RETURNING 1", (stage.names.state_changes,))
    worker = stage.worker()
    until(lambda: "tallyhook topics apply" in worker.reasons(), stage.workers)
    topics.apply(stage.settings)
    until(lambda: not worker.reasons(), stage.workers)
    road.execute("UPDATE alembic_version SET version_num = '0000'")
    second = stage.worker()
    until(lambda: "tallyhook migrate" in second.reasons(), stage.workers)
    road.execute("UPDATE alembic_version SET version_num = '0001'")
    until(lambda: not second.reasons(), stage.workers)


def test_a_partition_count_that_differs_is_refused(stage: Running) -> None:
    """A key would move to another partition."""
    worker = stage.worker(TALLYHOOK_PARTITIONS="5")
    until(lambda: "has 4 partitions" in worker.reasons() and "TALLYHOOK_PARTITIONS" in worker.reasons(), stage.workers)


def test_records_that_are_gone_stop_the_worker_with_the_range(road: Road, stage: Running) -> None:
    """It does not jump: the range and the way out are told, and after the acceptance it goes on by itself."""
    worker = stage.worker()
    road.correlate("dep-1")
    stage.publish(*(deposit(f"evt-{v}", "dep-1", v, "open") for v in range(12)), partition=2)
    until(lambda: applied(road) == 12, stage.workers)
    worker.end()
    stage.publish(*(deposit(f"evt-{v}", "dep-1", v, "open") for v in range(12, 30)), partition=2)
    place = TopicPartition(stage.names.state_changes, 2, 20)
    admin = kafka.admin(stage.settings.kafka)
    for outcome in admin.delete_records([place]).values():
        outcome.result(30)
    late = stage.worker()
    until(lambda: "records 12 to 19 (8) are gone" in late.reasons(), stage.workers)
    assert late.page("livez")[0] == 200
    assert applied(road) == 12
    road.execute(
        "UPDATE sink_offsets SET next_offset = 20 WHERE topic = %s AND partition = 2", (stage.names.state_changes,)
    )
    until(lambda: applied(road) == 22, stage.workers)
    until(lambda: not late.reasons(), stage.workers)


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


def test_correlations_come_by_table_and_by_topic(road: Road, stage: Running) -> None:
    """Parked events go on within a second of either; contradictions and nonsense are set aside, nothing stops."""
    worker = stage.worker()
    stage.publish(
        deposit("evt-a", "dep-a", 1, "settled"),
        deposit("evt-b", "dep-b", 1, "settled"),
    )
    until(lambda: applied(road) == 2, stage.workers)
    until(lambda: worker.metric("tallyhook_sink_parked") == 2, stage.workers)
    road.correlate("dep-a")
    record = {"pg_deposit_id": "dep-b", "merchant_reference": "ref-b", "our_order_id": "ord-b", "our_user_id": "usr-b"}
    topic = stage.names.deposit_correlations
    stage.put(topic, "dep-b", json.dumps(record).encode())
    stage.put(topic, "dep-b", json.dumps(record).encode())
    stage.put(topic, "dep-b", json.dumps(record | {"our_user_id": "usr-thief"}).encode())
    stage.put(topic, "dep-b", None)
    stage.put(topic, "dep-c", json.dumps(record | {"pg_deposit_id": "dep-c"}).encode())
    stage.put(topic, "dep-d", b'{"pg_deposit_id": "dep-d"}')
    until(lambda: road.one("SELECT count(*) FROM pg_user_balance_entries") == 2, stage.workers)
    assert road.rows("SELECT user_id FROM pg_user_balances ORDER BY 1") == [("usr-b",), ("usr-dep-a",)]
    until(lambda: road.one("SELECT count(*) FROM quarantined_events") == 3, stage.workers)
    assert road.rows("SELECT object_id, reason FROM quarantined_events ORDER BY 1") == [
        ("dep-b", "correlation_collision"),
        ("dep-c", "correlation_collision"),
        ("dep-d", "correlation_shape"),
    ]


def test_dead_letters_are_copied_once(road: Road, stage: Running) -> None:
    """With stage, reason and detail, whatever their headers hold; a restart copies none of them again."""
    worker = stage.worker()
    headers = [("ce_stage", "ingress"), ("ce_reason", "envelope_version"), ("ce_detail", "is text"), ("ce_id", "evt-1")]
    stage.put(stage.names.dead_letters, "dep-1", b'{"id": "evt-1"}', headers)
    stage.put(stage.names.dead_letters, None, b"\xff\x00")
    until(lambda: road.one("SELECT count(*) FROM quarantined_events") == 2, stage.workers)
    assert worker.end() == 0
    stage.worker()
    stage.put(stage.names.dead_letters, "dep-2", b"{}", headers[:3])
    until(lambda: road.one("SELECT count(*) FROM quarantined_events") == 3, stage.workers)
    assert road.rows(
        "SELECT stage, reason, detail, event_id, object_id, raw FROM quarantined_events ORDER BY object_id"
    ) == [
        ("ingress", "envelope_version", "is text", "evt-1", "dep-1", b'{"id": "evt-1"}'),
        ("ingress", "envelope_version", "is text", None, "dep-2", b"{}"),
        ("streams", "record_headers", "no detail was given", None, None, b"\xff\x00"),
    ]


def test_transactions_of_foreign_writers_do_not_count_until_committed(road: Road, stage: Running) -> None:
    """Aborted records are never applied, and the offsets that markers take are passed over."""
    worker = stage.worker()
    road.correlate("dep-1")
    writer = kafka.producer(
        stage.settings.kafka,
        linger_ms=0,
        delivery_timeout_seconds=30,
        transactional_id=f"{stage.names.prefix}-foreign",
        on_fatal=lambda _: None,
    )
    writer.init_transactions(30)
    for version, commit in ((1, True), (2, False), (3, True)):
        event = deposit(f"evt-{version}", "dep-1", version, "open")
        writer.begin_transaction()
        writer.produce(stage.names.state_changes, key="dep-1", value=event.body, headers=event.headers(0, version))
        writer.flush(30)
        if commit:
            writer.commit_transaction(30)
        else:
            writer.abort_transaction(30)
    stage.publish(deposit("evt-4", "dep-1", 4, "open"))
    until(lambda: applied(road) == 3, stage.workers)
    assert road.rows("SELECT event_id FROM pg_webhook_inbox ORDER BY arrival_seq") == [
        ("evt-1",),
        ("evt-3",),
        ("evt-4",),
    ]
    assert worker.metric("tallyhook_sink_batches_repeated_total") == 0


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


def test_wrong_settings_end_with_2(stage: Running) -> None:
    """A worker without a database says so and ends."""
    worker = stage.worker(TALLYHOOK_DATABASE_URL="")
    assert worker.process.wait(30) == 2
    assert "TALLYHOOK_DATABASE_URL is not set" in worker.log()
