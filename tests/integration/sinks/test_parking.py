"""Parking: what outruns its correlation waits, whole and in order, and nothing else waits for it."""

import time

import pytest

from sinks.batch import Applier
from sinks.parking import Parking
from tests.integration.sinks.conftest import Feed, Road
from tests.integration.sinks.deliveries import deposit, overpayment, withdrawal

INBOX = (
    "SELECT event_id, verdict, reason, parked_reason, processed_at IS NULL FROM pg_webhook_inbox ORDER BY arrival_seq"
)


@pytest.fixture
def applier(road: Road) -> Applier:
    """An applier that owns partition 0."""
    return road.applier(0)


@pytest.fixture
def feed(applier: Applier) -> Feed:
    """Deliveries in partition 0."""
    return Feed(applier)


def test_a_life_that_outran_its_correlation(road: Road, feed: Feed) -> None:
    """v1, v3, v2, each sent twice: three rows wait; then v3 counts, one credit, v2 is late; others never waited."""
    road.correlate("dep-other")
    v1 = deposit("evt-1", "dep-1", 1, "slip_received")
    v3 = deposit("evt-3", "dep-1", 3, "settled", overpayment=overpayment("clm-1"))
    v2 = deposit("evt-2", "dep-1", 2, "under_review")
    feed.apply(v1, v1, v3, deposit("other", "dep-other", 1, "settled"), v3, v2, v2)
    waiting = [row for row in road.rows(INBOX) if row[4]]
    assert waiting == [(f"evt-{n}", "parked", None, "correlation", True) for n in (1, 3, 2)]
    assert road.one("SELECT count(*) FROM redeliveries") == 3
    assert road.one("SELECT count(*) FROM pg_user_balance_entries") == 1
    assert [(row.reason, row.events) for row in feed.applier.parking.count([0])] == [("correlation", 3)]
    assert feed.applier.apply_ready().finished == 0
    road.correlate("dep-1")
    assert feed.applier.apply_ready().finished == 3
    assert road.rows(INBOX) == [
        ("evt-1", "advanced", None, None, False),
        ("evt-3", "advanced", None, None, False),
        ("other", "advanced", None, None, False),
        ("evt-2", "late", "older_version", None, False),
    ]
    effects = "SELECT type, causation_id FROM pg_outbox WHERE aggregateid = 'dep-1' ORDER BY seq"
    assert road.rows(effects) == [
        ("update_order_status", "evt-1"),
        ("balance_entry", "evt-3"),
        ("release_goods", "evt-3"),
    ]
    assert road.rows("SELECT claim_id, observed_deposit_version FROM pg_deposit_overpayment_flags") == [("clm-1", 3)]
    assert feed.applier.apply_ready().finished == 0


def test_a_batch_applies_what_waited_for_its_objects_first(road: Road, feed: Feed) -> None:
    """When a new event meets a correlation that just came, the events that waited are decided before it."""
    feed.apply(deposit("evt-5", "dep-1", 5, "settled"))
    road.correlate("dep-1")
    result = feed.apply(deposit("evt-6", "dep-1", 6, "reversed"))
    assert result.finished == 1
    assert road.rows("SELECT type FROM pg_outbox ORDER BY seq") == [
        ("balance_entry",),
        ("release_goods",),
        ("balance_entry",),
        ("hold_goods",),
    ]


def test_a_parked_event_sent_again_is_known(road: Road, feed: Feed) -> None:
    """It is a redelivery while it waits; a replay of the stream is nothing at all."""
    event = deposit("evt-1", "dep-1", 1, "open")
    feed.apply(event)
    result = feed.apply(event, event, replayed_from=0)
    assert (result.replayed, result.verdicts["redelivered"]) == (1, 1)
    assert len(road.rows(INBOX)) == 1


def test_a_collision_among_parked_events_is_set_aside(road: Road, feed: Feed) -> None:
    """The second of two contradicting claims leaves the inbox and goes into quarantine, with its bytes."""
    first = deposit("evt-1", "dep-1", 1, "open", overpayment=overpayment("clm-1"))
    second = deposit("evt-2", "dep-1", 2, "settled", overpayment=overpayment("clm-1", 7))
    third = deposit("evt-3", "dep-1", 3, "settled")
    feed.apply(first, second, third)
    road.correlate("dep-1")
    feed.applier.apply_ready()
    assert [row[:2] for row in road.rows(INBOX)] == [("evt-1", "advanced"), ("evt-3", "advanced")]
    assert road.rows("SELECT event_id, reason, raw, source_offset, headers ->> 'ce_id' FROM quarantined_events") == [
        ("evt-2", "overpayment_collision", second.body, 1, "evt-2")
    ]
    assert road.one("SELECT event_id FROM pg_user_balance_entries") == "evt-3"


def test_a_correlation_that_commits_late_is_not_missed(road: Road, feed: Feed) -> None:
    """Its transaction began before a look that did not see it, while others committed: the next look finds it."""
    feed.apply(*(deposit(f"evt-{n}", f"dep-{n}", 1, "open") for n in (1, 2)))
    with road.connection.transaction():
        road.correlate("dep-1")
        table = f"{road.installation.schema_name}.pg_deposit_correlations"
        other = road.applier(1)._statements.connection
        other.execute(f"INSERT INTO {table} VALUES ('dep-2', 'r', 'o', 'u')".encode())
        assert feed.applier.apply_ready().finished == 1
        assert feed.applier.apply_ready().finished == 0
    assert feed.applier.apply_ready().finished == 1


def test_a_new_owner_finds_what_its_predecessor_left(road: Road, feed: Feed) -> None:
    """Correlations that were written while nobody owned the partition count too."""
    feed.apply(deposit("evt-1", "dep-1", 1, "settled"))
    road.correlate("dep-1")
    successor = road.applier(1)
    assert successor.apply_ready().finished == 0
    successor.claim([0])
    assert successor.apply_ready().finished == 1


def test_more_waits_than_one_transaction_takes(road: Road) -> None:
    """An object with more parked events than the bound: they are applied in order in several, before the new event."""
    feed = Feed(road.applier(0, parked_rows_max=10))
    feed.apply(*(deposit(f"evt-{n}", "dep-1", n, "open") for n in range(35)))
    road.correlate("dep-1")
    result = feed.apply(deposit("evt-new", "dep-1", 99, "settled"))
    assert (result.finished, result.taken) == (35, 1)
    causes = [
        row[0] for row in road.rows("SELECT causation_id FROM pg_outbox WHERE type <> 'balance_entry' ORDER BY seq")
    ]
    assert causes == [*(f"evt-{n}" for n in range(35)), "evt-new"]


def test_a_look_applies_everything_that_waits_for_its_objects(road: Road) -> None:
    """More than one transaction takes: nothing is left for a look that would not come."""
    feed = Feed(road.applier(0, parked_rows_max=10))
    feed.apply(*(deposit(f"evt-{n}", f"dep-{n % 2}", n, "open") for n in range(35)))
    road.correlate("dep-0", "dep-1")
    assert feed.applier.apply_ready().finished == 35


def test_looking_stays_cheap_with_many_parked(road: Road, applier: Applier) -> None:
    """With 100,000 that wait in vain and as many correlations, a look touches only what was written since the last."""
    road.execute(
        "INSERT INTO pg_webhook_inbox (event_id, event_type, event_raw, received_at, parked_reason, object_id,"
        " object_kind, version, merchant_id, sequence, partition, arrival_seq, source_partition, source_offset,"
        " verdict, key_id, origin) SELECT 'evt-' || n, 't', '{}', now(), 'correlation', 'lost-' || n, 'deposit_order',"
        " 1, 'm', n, 0, n, 0, n, 'parked', 'k', 'webhook' FROM generate_series(1, 100000) n"
    )
    road.execute(
        "INSERT INTO pg_deposit_correlations"
        " SELECT 'known-' || n, 'r-' || n, 'o', 'u' FROM generate_series(1, 100000) n"
    )
    road.execute("ANALYZE pg_webhook_inbox")
    road.execute("ANALYZE pg_deposit_correlations")
    parking = Parking(applier._statements.connection, road.installation.schema_name)
    assert parking.find_ready([0]) == []
    began = time.perf_counter()
    for _ in range(10):
        assert parking.find_ready([0]) == []
    seconds = (time.perf_counter() - began) / 10
    road.correlate("lost-77777")
    assert parking.find_ready([0]) == ["lost-77777"]
    # A scan of the parked rows takes some 100 ms; the bound leaves room for a busy machine.
    assert seconds < 0.02, f"a look took {seconds * 1000:.1f} ms"
    # What waits for a row has an index of its own, so those that wait for a correlation cost this look nothing.
    began = time.perf_counter()
    assert parking.find_built([0]) == []
    assert time.perf_counter() - began < 0.02


@pytest.mark.parametrize("touched_by", ["a refused event", "a withdrawal of the same name"])
def test_what_waited_is_decided_on_its_own_row(road: Road, feed: Feed, touched_by: str) -> None:
    """The deposit was taken over meanwhile, and a batch touches its id without reading the deposit itself."""
    feed.apply(deposit("evt-1", "dep-1", 1, "settled"))
    road.correlate("dep-1")
    road.execute(
        "INSERT INTO pg_deposits (pg_deposit_id, pg_version, status, our_order_id, our_user_id)"
        " VALUES ('dep-1', 5, 'open', 'ord-dep-1', 'usr-dep-1')"
    )
    if touched_by == "a refused event":
        feed.apply(deposit("evt-2", "dep-1", 6, "settled", fee_total_minor=1))
    else:
        feed.apply(withdrawal("evt-2", "dep-1", 6, "open"))
    assert road.rows(INBOX)[0] == ("evt-1", "late", "older_version", None, False)
    assert road.one("SELECT count(*) FROM pg_user_balance_entries") == 0
