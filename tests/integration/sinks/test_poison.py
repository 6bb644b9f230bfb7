"""Poison: one event is set aside with its bytes, and nobody else is stopped."""

import random
import threading
from dataclasses import replace

import psycopg
import pytest

from sinks.errors import NumbersTaken, TooManyQuarantined
from sinks.plan import BatchResult
from sinks.records import SinkRecord
from tallyhook.settings import SinkSettings
from tests.integration.sinks.conftest import Feed, Road
from tests.integration.sinks.deliveries import Delivery, body, deposit, overpayment

SET_ASIDE = "SELECT event_id, reason FROM quarantined_events ORDER BY source_partition, source_offset"
BIGINT_MAX = (1 << 63) - 1


@pytest.fixture
def feed(road: Road) -> Feed:
    """Deliveries in partition 0."""
    return Feed(road.applier(0))


def test_three_poison_events_among_a_thousand(road: Road, feed: Feed) -> None:
    """997 are applied and 3 set aside with their bytes; later events of the same objects go on."""
    ids = [f"dep-{number}" for number in range(1000)]
    road.correlate(*ids)
    events = [deposit(f"evt-{key}", key, 1, "settled") for key in ids]
    events[100] = deposit("evt-nul", "dep-100", 1, "settled", metadata={"note": "a\0b"})
    events[500] = deposit("evt-money", "dep-500", 1, "settled", fee_total_minor=1)
    events[999] = deposit("evt-date", "dep-999", 1, "open", clearing_available_at="2026-02-30T00:00:00Z")
    result = feed.apply(*events)
    assert (result.verdicts["advanced"], result.verdicts["quarantined"]) == (997, 3)
    assert road.rows(SET_ASIDE) == [("evt-nul", "body_text"), ("evt-money", "money_rule"), ("evt-date", "body_date")]
    assert [row[0] for row in road.rows("SELECT raw FROM quarantined_events ORDER BY source_offset")] == [
        events[number].body for number in (100, 500, 999)
    ]
    assert "data.object.metadata.note" in road.one("SELECT detail FROM quarantined_events WHERE event_id = 'evt-nul'")
    assert road.one("SELECT count(*) FROM pg_user_balance_entries") == 997
    feed.apply(*(deposit(f"evt-again-{n}", f"dep-{n}", 2, "settled") for n in (100, 500, 999)))
    assert road.one("SELECT count(*) FROM pg_user_balance_entries") == 1000


def test_what_only_the_database_refuses_is_found_by_halving(road: Road, feed: Feed) -> None:
    """A balance that leaves bigint's range: its event is set aside alone, in its place, and the rest is applied."""
    ids = [f"dep-{number}" for number in range(100)]
    road.correlate(*ids[:-1])
    road.correlate(ids[-1], user="usr-rich")
    road.execute("INSERT INTO pg_user_balances VALUES ('usr-rich', %s)", (BIGINT_MAX - 5,))
    events = [deposit(f"evt-{key}", key, 1, "settled", amount_minor=100) for key in ids]
    events.insert(40, deposit("evt-too-much", ids[-1], 1, "settled", amount_minor=100))
    result = feed.apply(*events[:-1])
    assert (result.taken, result.verdicts["quarantined"]) == (100, 1)
    assert road.rows(SET_ASIDE) == [("evt-too-much", "database_refused")]
    assert "SQLSTATE 22003" in road.one("SELECT detail FROM quarantined_events")
    assert road.one("SELECT count(*) FROM pg_webhook_inbox") == 99
    assert road.one("SELECT balance_minor FROM pg_user_balances WHERE user_id = 'usr-rich'") == BIGINT_MAX - 5
    numbers = [row[0] for row in road.rows("SELECT arrival_seq FROM pg_webhook_inbox ORDER BY 1")]
    assert numbers == list(range(99))


@pytest.mark.parametrize("bad", [0, 3, 6])
def test_a_parked_event_that_the_database_refuses_is_found_too(road: Road, feed: Feed, bad: int) -> None:
    """Among the events that waited for one object the poison one is set aside, and the others are applied in order."""
    road.execute("ALTER TABLE pg_deposits ADD CHECK (balance_transaction_id <> 'bad')")
    events = [
        deposit(f"evt-{n}", "dep-1", n, "open", balance_transaction_id="bad" if n == bad else "good") for n in range(7)
    ]
    # Alone in its batch the poison event's own version is written, so each is applied from the smallest on.
    feed.apply(*events)
    assert road.one("SELECT count(*) FROM pg_webhook_inbox WHERE processed_at IS NULL") == 7
    road.correlate("dep-1")
    if bad == 6:
        result = feed.applier.apply_ready()
    else:
        road.execute(f"ALTER TABLE pg_outbox ADD CHECK (causation_id <> 'evt-{bad}')".encode())
        result = feed.applier.apply_ready()
    assert result.finished == 7
    assert road.rows(SET_ASIDE) == [(f"evt-{bad}", "database_refused")]
    assert road.rows(
        "SELECT count(*) FROM pg_webhook_inbox WHERE processed_at IS NOT NULL AND verdict = 'advanced'"
    ) == [(6,)]
    causes = [row[0] for row in road.rows("SELECT causation_id FROM pg_outbox ORDER BY seq")]
    assert causes == [f"evt-{n}" for n in range(7) if n != bad]


def test_the_same_poison_read_again_is_one_row(road: Road, feed: Feed) -> None:
    """A replay writes nothing more; another delivery of it is set aside for itself."""
    bad = deposit("evt-bad", "dep-1", 1, "settled", fee_total_minor=1)
    feed.apply(bad)
    feed.apply(bad, replayed_from=0)
    assert len(road.rows(SET_ASIDE)) == 1
    feed.apply(bad)
    assert len(road.rows(SET_ASIDE)) == 2


def test_the_money_rule_comes_before_parking(road: Road, feed: Feed) -> None:
    """Without a correlation too, an event that contradicts itself is set aside and not parked."""
    feed.apply(deposit("evt-bad", "dep-1", 1, "settled", fee_total_minor=1, overpayment=overpayment("clm-1")))
    assert road.rows(SET_ASIDE) == [("evt-bad", "money_rule")]
    assert road.one("SELECT count(*) FROM pg_webhook_inbox") == 0


def test_a_claim_seen_with_other_content_is_a_collision(road: Road) -> None:
    """Across partitions and batches: the first one stays, the other event is set aside whole."""
    applier = road.applier(0, 1)
    one, other = Feed(applier, 0), Feed(applier, 1)
    road.correlate("dep-1", "dep-2")
    flag = overpayment("clm-1")
    one.apply(deposit("a", "dep-1", 1, "open", overpayment=flag))
    other.apply(deposit("b", "dep-2", 1, "settled", overpayment=flag), deposit("c", "dep-2", 2, "open"))
    one.apply(deposit("d", "dep-1", 2, "open", overpayment=flag | {"amount_minor": 501}))
    one.apply(deposit("e", "dep-1", 3, "open", overpayment=dict(reversed(flag.items()))))
    assert road.rows(SET_ASIDE) == [("d", "overpayment_collision"), ("b", "overpayment_collision")]
    assert road.rows("SELECT pg_deposit_id, pg_version FROM pg_deposits ORDER BY 1") == [("dep-1", 3), ("dep-2", 2)]
    assert road.rows("SELECT pg_deposit_id, observed_deposit_version FROM pg_deposit_overpayment_flags") == [
        ("dep-1", 1)
    ]
    assert road.one("SELECT count(*) FROM pg_user_balance_entries") == 0


def test_a_claim_taken_by_a_worker_at_the_same_moment(road: Road) -> None:
    """The other worker's flag is committed while this batch waits for it: the batch is decided anew."""
    road.correlate("dep-1", "dep-2")
    feed = Feed(road.applier(0))
    outcome: list[BatchResult] = []

    with road.connection.transaction():
        # What the other worker will write, not yet committed.
        road.execute(
            "INSERT INTO pg_deposits (pg_deposit_id, pg_version, status, our_order_id, our_user_id)"
            " VALUES ('dep-2', 1, 'open', 'o', 'u')"
        )
        road.execute(
            "INSERT INTO pg_deposit_overpayment_flags (claim_id, pg_deposit_id, observed_deposit_version, cause,"
            " amount_minor, slip_received_at, status_snapshot, action_required_snapshot, raw_flag) VALUES"
            " ('clm-1', 'dep-2', 1, 'same_transfer_excess', 500, now(), 'open', 'contact_support', '{}')"
        )

        def apply() -> None:
            outcome.append(feed.apply(deposit("a", "dep-1", 1, "open", overpayment=overpayment("clm-1"))))

        thread = threading.Thread(target=apply)
        thread.start()
        pid = feed.applier._statements.connection.info.backend_pid
        while thread.is_alive() and not road.one("SELECT cardinality(pg_blocking_pids(%s))", (pid,)):
            pass
    thread.join()
    assert outcome[0].repeated == {"conflict": 1}
    assert road.rows(SET_ASIDE) == [("a", "overpayment_collision")]


def test_the_same_event_id_on_two_partitions(road: Road) -> None:
    """Same content is a redelivery, other content is set aside, also when both come at once."""
    applier = road.applier(0, 1)
    one, other = Feed(applier, 0), Feed(applier, 1, next_source=50)
    road.correlate("dep-1", "dep-2")
    one.apply(deposit("evt", "dep-1", 1, "open"))
    other.apply(deposit("evt", "dep-2", 1, "settled"))
    assert road.rows(SET_ASIDE) == [("evt", "event_id_collision")]
    assert road.one("SELECT count(*) FROM pg_user_balance_entries") == 0
    applier.apply(one.records(deposit("both", "dep-1", 2, "open")) + other.records(deposit("both", "dep-2", 2, "open")))
    assert [reason for _, reason in road.rows(SET_ASIDE)] == ["event_id_collision"] * 2
    assert road.rows("SELECT object_id FROM pg_webhook_inbox WHERE event_id = 'both'") == [("dep-1",)]


def test_what_a_foreign_writer_puts_into_the_topic(road: Road, feed: Feed) -> None:
    """Records whose headers cannot be trusted are set aside by their place, and the partition goes on."""
    good = deposit("evt-good", "dep-1", 1, "open")
    records = [
        SinkRecord(0, 0, 1, b"anything", []),
        SinkRecord(0, 1, 1, good.body, [("ce_id", b"\xff"), *good.headers(0, 1)]),
        SinkRecord(0, 2, 1, good.body, replace(good, event_id="evt-other").headers(0, 2)),
        SinkRecord(0, 3, 1, good.body, replace(good, version=2).headers(0, 3)),
        SinkRecord(0, 4, 1, good.body, replace(good, origin="elsewhere").headers(0, 4)),
        SinkRecord(0, 5, 1, good.body, replace(good, received_at="yesterday").headers(0, 5)),
        SinkRecord(0, 6, 1, good.body, replace(good, object_id="dep\0").headers(0, 6)),
        SinkRecord(0, 7, 1, good.body, good.headers(0, 7)),
    ]
    road.correlate("dep-1")
    result = feed.applier.apply(records)
    assert (result.taken, result.quarantined["record_headers"], result.verdicts["advanced"]) == (8, 7, 1)
    first = road.rows(
        "SELECT source_topic, source_offset, raw, headers, event_id FROM quarantined_events ORDER BY id LIMIT 1"
    )
    assert first == [(f"{road.installation.topic_prefix}.state-changes", 0, b"anything", {}, None)]


def test_an_id_that_no_index_takes_is_kept_in_the_headers(road: Road, feed: Feed) -> None:
    """The door bounds ids, another writer may not: the record is set aside all the same, whole."""
    long_id = random.Random(1).randbytes(6_000).hex()
    feed.apply(replace(deposit(long_id, "dep-1", 1, "open"), origin="elsewhere"))
    found = road.rows("SELECT reason, event_id, headers ->> 'ce_id' FROM quarantined_events")
    assert found == [("record_headers", None, long_id)]


def test_what_cannot_even_be_set_aside_stops_and_loses_nothing(road: Road, feed: Feed) -> None:
    """The database's own failure is raised, not repeated without end; the position stays before the event."""
    road.execute("ALTER TABLE quarantined_events ADD CONSTRAINT no_more CHECK (false)")
    with pytest.raises(psycopg.errors.CheckViolation):
        feed.apply(Delivery("a", "dep-1", 1, "open", b"{"))
    assert road.rows("SELECT * FROM quarantined_events") == []
    assert road.one("SELECT next_offset FROM sink_offsets") == 0


def test_events_of_the_other_mode_are_set_aside(road: Road, feed: Feed) -> None:
    """Test traffic never touches live rows."""
    road.correlate("dep-1")
    test = replace(deposit("evt-1", "dep-1", 1, "settled"), livemode=False)
    feed.apply(test)
    assert road.rows(SET_ASIDE) == [("evt-1", "wrong_livemode")]
    assert road.rows("SELECT * FROM pg_deposits") == []


def test_a_payload_over_the_limit_is_set_aside(road: Road) -> None:
    """Version, row and effect are left as if the event had not come."""
    road.correlate("dep-1")
    feed = Feed(road.applier(0, settings=SinkSettings(max_payload_bytes=1024)))
    feed.apply(deposit("evt-1", "dep-1", 1, "rejected", rejection={"display_th": "ก" * 400}))
    assert road.rows(SET_ASIDE) == [("evt-1", "payload_too_large")]
    assert road.rows("SELECT * FROM pg_deposits") == []


def test_a_body_that_is_no_json_is_set_aside_for_any_kind(road: Road, feed: Feed) -> None:
    """Also where the kind has no rules: the inbox keeps only what reads as JSON."""
    feed.apply(
        Delivery("a", "rfd-1", 1, "open", b"{", kind="refund_order"),
        Delivery(
            "b",
            "rfd-1",
            2,
            "open",
            body("b", "x", {"id": "rfd-1", "object": "refund_order"}),
            kind="refund_order",
        ),
        Delivery("c", "rfd-1", 3, "open", b'{"id":"c","data":[]}', kind="refund_order"),
    )
    assert road.rows(SET_ASIDE) == [("a", "body_not_json"), ("c", "body_shape")]


def test_more_than_the_limit_stops_the_worker(road: Road) -> None:
    """The 4th of 1,000 with a limit of 3: it is set aside, what follows is not taken, and a new process goes on."""
    limited = SinkSettings(quarantine_limit=3)
    feed = Feed(road.applier(0, settings=limited))
    road.correlate("dep-good")
    bad = [deposit(f"bad-{n}", "dep-1", n, "settled", fee_total_minor=1) for n in range(4)]
    good = deposit("good", "dep-good", 1, "settled")
    result = feed.apply(*bad, good)
    assert (result.stopped, result.taken, len(road.rows(SET_ASIDE))) == (True, 4, 4)
    with pytest.raises(TooManyQuarantined, match="TALLYHOOK_SINK_QUARANTINE_LIMIT"):
        feed.apply(good)
    with pytest.raises(TooManyQuarantined):
        feed.applier.apply_ready()
    assert road.one("SELECT next_offset FROM sink_offsets") == 4
    anew = Feed(road.applier(0, settings=limited), next_offset=4, next_source=4)
    assert anew.apply(good).verdicts["advanced"] == 1


def test_the_limit_counts_within_the_last_thousand(road: Road) -> None:
    """Three of a thousand, again and again, are normal with a limit of 3; replays count as they are."""
    feed = Feed(road.applier(0, settings=SinkSettings(quarantine_limit=3)))
    noise = [
        Delivery(f"n-{n}", "wdr-1", n, "", body(f"n-{n}", "x", {"id": "wdr-1", "object": "w"}), kind="w")
        for n in range(2000)
    ]
    bad = [deposit(f"bad-{n}", "dep-1", n, "settled", fee_total_minor=1) for n in range(6)]
    result = feed.apply(*bad[:3], *noise[:1000], *bad[3:], *noise[1000:])
    assert (result.stopped, result.taken) == (False, 2006)
    result = feed.apply(*bad[:3], *noise[:1000], replayed_from=0)
    assert (result.stopped, result.taken) == (False, 1003)


def test_numbers_that_were_set_back_are_nobodys_poison(road: Road, feed: Feed) -> None:
    """Our own books are wrong: nothing is set aside, and the message says what to restore."""
    road.correlate("dep-1", "dep-2")
    feed.apply(deposit("a", "dep-1", 1, "open"))
    road.execute("UPDATE sink_offsets SET next_outbox_seq = 0")
    with pytest.raises(NumbersTaken, match="sink_offsets was set back"):
        feed.apply(deposit("b", "dep-2", 1, "open"))
    assert road.rows(SET_ASIDE) == []
