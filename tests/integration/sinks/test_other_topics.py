"""The worker's other topics: correlations and dead letters."""

import json

from tests.integration.sinks.balances import applied
from tests.integration.sinks.conftest import Road
from tests.integration.sinks.deliveries import deposit
from tests.integration.sinks.running import Running, until


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


def test_what_the_database_lost_comes_again_while_nothing_else_comes(road: Road, stage: Running) -> None:
    """Correlations and dead letters of lost commits are read again, though no session ended and no record follows."""
    worker = stage.worker()
    record = {"pg_deposit_id": "dep-b", "merchant_reference": "ref-b", "our_order_id": "ord-b", "our_user_id": "usr-b"}
    stage.put(stage.names.deposit_correlations, "dep-b", json.dumps(record).encode())
    stage.put(stage.names.dead_letters, "dep-1", b'{"id": "evt-1"}')
    there = "SELECT (SELECT count(*) FROM pg_deposit_correlations), (SELECT count(*) FROM quarantined_events)"
    until(lambda: road.rows(there) == [(1, 1)], stage.workers)
    until(lambda: worker.reasons() == "", stage.workers)
    topics = [stage.names.deposit_correlations, stage.names.dead_letters]
    noted = "SELECT count(*) FROM sink_offsets WHERE topic = ANY(%s) AND next_offset > 0"
    until(lambda: road.rows(noted, (topics,)) == [(2,)], stage.workers)
    # One statement: a worker must not see the one without the other.
    road.execute(
        "WITH a AS (DELETE FROM pg_deposit_correlations), b AS (DELETE FROM quarantined_events)"
        " UPDATE sink_offsets SET next_offset = 0 WHERE topic = ANY(%s)",
        (topics,),
    )
    until(lambda: road.rows(there) == [(1, 1)], stage.workers)
    assert worker.process.poll() is None
