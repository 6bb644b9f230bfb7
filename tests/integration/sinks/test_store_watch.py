"""What the stores say is measured beside the loops: whoever should act, and also while nobody does."""

import psycopg
import pytest

from sinks.measures import Measures
from sinks.store_watch import StoreWatch
from tallyhook.clock import SystemClock
from tallyhook.metrics import Metrics
from tests.integration.relay.waiting import eventually
from tests.integration.sinks.balances import applied, lives
from tests.integration.sinks.conftest import Road
from tests.integration.sinks.deliveries import deposit
from tests.integration.sinks.running import Running, until

AGE_SECONDS = 500


def value(metrics: Metrics, name: str) -> float | None:
    """A gauge; None before it was measured."""
    return metrics.registry.get_sample_value(name)


def fill_outbox(road: Road) -> None:
    """Ten rows each in two partitions with a relay's cursor, and three in one that no relay has ever had."""
    road.execute(
        "INSERT INTO pg_outbox (partition, seq, aggregatetype, aggregateid, type, topic, payload, dedupe_key,"
        " causation_id, version, received_at, created_at)"
        " SELECT p, s, 'deposit', 'dep', 'deposit.settled', 'release_goods', '{}', p || ':' || s, 'evt', s, now(),"
        " now() - make_interval(secs => %s) + make_interval(secs => s)"
        " FROM generate_series(0, 2) AS p, generate_series(0, 9) AS s WHERE p < 2 OR s < 3",
        (AGE_SECONDS,),
    )
    road.execute("INSERT INTO relay_cursors (partition, sent_seq) VALUES (0, 9), (1, 5)")


def test_what_waits_in_the_stores(road: Road) -> None:
    """Rows after the cursors with the age of the first, open quarantine, users who owe; nothing where nothing waits."""
    metrics = Metrics()
    watch = StoreWatch(road.database, road.installation, Measures(metrics, SystemClock()), SystemClock())
    watch.look(road.connection)
    names = (
        "tallyhook_outbox_unsent_rows",
        "tallyhook_outbox_oldest_seconds",
        "tallyhook_sink_quarantined_open",
        "tallyhook_sink_negative_balances",
    )
    assert [value(metrics, name) for name in names] == [0, 0, 0, 0]

    fill_outbox(road)
    road.execute("INSERT INTO pg_user_balances VALUES ('usr-1', -1), ('usr-2', 0), ('usr-3', 5)")
    road.execute(
        "INSERT INTO quarantined_events (stage, reason, detail, raw, headers, source_topic, source_partition,"
        " source_offset, state) SELECT 'sinks', 'body_shape', '', '', '[]', 't', 0, n, s"
        " FROM unnest(ARRAY['open', 'open', 'redriven', 'discarded']) WITH ORDINALITY AS r(s, n)"
    )
    metrics = Metrics()
    StoreWatch(road.database, road.installation, Measures(metrics, SystemClock()), SystemClock()).look(road.connection)
    found = [value(metrics, name) for name in names]
    assert found[0] == 4
    # The first row that is not sent is the seventh of its partition.
    assert found[1] is not None
    assert AGE_SECONDS - 6 <= found[1] < AGE_SECONDS + 20
    assert found[2:] == [2, 1]


def test_it_goes_on_when_the_schema_comes_later(road: Road) -> None:
    """A failed look is repeated; the thread ends when it is told to."""
    metrics = Metrics()
    road.execute("ALTER TABLE pg_outbox RENAME TO pg_outbox_away")
    watch = StoreWatch(road.database, road.installation, Measures(metrics, SystemClock()), SystemClock())
    with pytest.raises(psycopg.Error):
        watch.look(road.connection)
    watch.start()
    road.execute("ALTER TABLE pg_outbox_away RENAME TO pg_outbox")
    eventually("it measures", lambda: value(metrics, "tallyhook_outbox_unsent_rows") == 0, 30)
    watch.stop()
    eventually("it has ended", lambda: not watch.is_alive())


def test_a_sink_shows_what_it_did_and_what_waits(road: Road, stage: Running) -> None:
    """Effects by name, dead letters and quarantined events by reason, what no relay has sent."""
    worker = stage.worker()
    stage.publish(*lives(road, 3), deposit("evt-bad", "dep-bad", 1, "settled", fee_total_minor="x"))
    headers = [("ce_stage", "ingress"), ("ce_reason", "envelope_version"), ("ce_id", "evt-1")]
    stage.put(stage.names.dead_letters, "dep-1", b"{}", headers)
    until(lambda: applied(road) == 6, stage.workers)
    until(lambda: worker.metric("tallyhook_sink_quarantined_open") == 2, stage.workers)
    page = worker.page("metrics")[1]
    assert 'tallyhook_sink_quarantined_total{reason="envelope_version"} 1.0' in page
    assert 'tallyhook_sink_effects_total{effect="balance_entry"} 3.0' in page
    assert worker.metric("tallyhook_sink_quarantined_total") == 2
    assert worker.metric("tallyhook_sink_effects_total") == road.one("SELECT count(*) FROM pg_outbox")
    # No relay has ever run here, so that nothing is owed by one.
    assert worker.metric("tallyhook_outbox_unsent_rows") == 0
    until(lambda: 'tallyhook_lag_unknown_seconds{topic="events"}' in worker.page("metrics")[1], stage.workers)
