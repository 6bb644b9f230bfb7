"""The keeper of the sequence on PostgreSQL and Kafka: exact from every source, whatever fails in between."""

import random
from collections.abc import Callable
from datetime import timedelta

import pytest

from schemas.headers import EventHeaders
from sinks.sequence_keeper import Turns
from tallyhook.kafka import producer
from tallyhook.operations import topics
from tallyhook.postgres import connect
from tests.integration.sinks.numbered import MERCHANT, RECEIVED_AT, Numbered, missing, settle


def test_numbers_that_are_missing_are_gaps_and_close_when_they_come(place: Numbered) -> None:
    """By merchant, from the first one seen on; lower ones do not count."""
    keeper = place.keeper("one")
    place.arrive(10, 12, 17, partition=0)
    place.arrive(14, 3, partition=1, minutes=1)
    place.arrive(5, 6, merchant="mer_2", partition=2)
    settle(keeper)
    assert place.head() == (10, 17)
    assert place.gaps() == [(11, 11), (13, 13), (15, 16)]
    assert (place.head("mer_2"), place.gaps("mer_2")) == ((5, 6), [])
    place.arrive(15, 11, 20, partition=3)
    settle(keeper)
    assert place.gaps() == [(13, 13), (16, 16), (18, 19)]
    place.arrive(13, 16, 18, 19)
    settle(keeper)
    assert (place.head(), place.gaps()) == ((10, 20), [])


def test_a_gap_is_as_old_as_the_number_that_showed_it(place: Numbered) -> None:
    """And what is left of it stays so old when it is split."""
    keeper = place.keeper("one")
    place.arrive(1, 9)
    settle(keeper)
    place.arrive(5, minutes=300)
    settle(keeper)
    place.arrive(12, minutes=600)
    settle(keeper)
    found = place.road.rows("SELECT first_sequence, opened_at FROM sequence_gaps ORDER BY 1")
    ages = {first: opened_at - RECEIVED_AT for first, opened_at in found}
    assert ages == {
        2: timedelta(milliseconds=1),
        6: timedelta(milliseconds=1),
        10: timedelta(minutes=600, milliseconds=3),
    }


def test_what_was_set_aside_was_seen(place: Numbered) -> None:
    """Dead letters and quarantined events alike; what was never at the door, or has no number, does not count."""
    keeper = place.keeper("one")
    place.arrive(1, 10)
    place.set_aside(4)
    place.set_aside(6, reason="envelope_id")
    place.set_aside("7", reason="record_headers")
    place.set_aside("x8")
    place.set_aside("99999999999999999999")
    settle(keeper)
    assert place.gaps() == [(2, 3), (5, 5), (7, 9)]
    place.set_aside(8)
    settle(keeper)
    assert place.gaps() == [(2, 3), (5, 5), (7, 7), (9, 9)]


def test_a_stray_event_of_another_merchant_opens_no_sequence(place: Numbered) -> None:
    """What came to the wrong endpoint counts only for a merchant that is known."""
    keeper = place.keeper("one")
    place.arrive(1, 3)
    settle(keeper)
    place.set_aside(2, reason="envelope_merchant")
    place.set_aside(500, merchant="mer_9", reason="envelope_merchant")
    settle(keeper)
    assert (place.gaps(), place.head("mer_9")) == ([], None)


def test_an_event_that_was_set_aside_in_a_transaction_that_commits_late_is_seen(place: Numbered) -> None:
    """The keeper has gone past its id by then."""
    keeper = place.keeper("one")
    place.arrive(1, 4)
    with connect(place.road.database, "test") as late:
        late.execute(f"SET search_path TO {place.settings.installation.schema_name}".encode())
        with late.transaction():
            place.set_aside(2, connection=late)
            place.set_aside(3)
            settle(keeper)
            assert place.gaps() == [(2, 2)]
    settle(keeper)
    assert place.gaps() == []


def test_a_horizon_of_another_servers_data_is_not_believed(place: Numbered) -> None:
    """Restored elsewhere, the stored transaction id may lie in the future: everything is read once more."""
    keeper = place.keeper("one")
    place.arrive(1, 3)
    settle(keeper)
    place.road.execute("UPDATE sequence_sources SET next_number = 9000000000 WHERE source = 'set-aside'")
    place.set_aside(2)
    settle(keeper)
    assert place.gaps() == []


def test_more_than_a_page_that_was_set_aside(place: Numbered, monkeypatch: pytest.MonkeyPatch) -> None:
    """In pages, also when one transaction wrote them all and when another keeper goes on in the middle."""
    monkeypatch.setattr("sinks.sequence_sources.SET_ASIDE_ROWS_MAX", 7)
    place.arrive(0, 101)
    with place.road.connection.transaction():
        for number in range(1, 101):
            place.set_aside(number)
    first = place.keeper("one")
    for _ in range(4):
        assert first.turn()
    first.leave()
    assert place.gaps() == [(29, 100)]
    settle(place.keeper("two"))
    assert place.gaps() == []


def test_ignored_and_unlisted_numbers_that_come_are_seen(place: Numbered) -> None:
    """What is left of the range keeps who closed it and why."""
    keeper = place.keeper("one")
    place.arrive(1, 6)
    settle(keeper)
    place.road.execute(
        "UPDATE sequence_gaps SET state = 'ignored', closed_at = now(), actor = 'nok', reason = 'outage'"
    )
    place.arrive(3)
    settle(keeper)
    rows = place.road.rows("SELECT first_sequence, last_sequence, state, actor, reason FROM sequence_gaps ORDER BY 1")
    assert rows == [(2, 2, "ignored", "nok", "outage"), (4, 5, "ignored", "nok", "outage")]


def test_random_batches_from_all_sources_give_what_all_numbers_at_once_give(place: Numbered) -> None:
    """Three merchants, twelve hundred numbers in random order and in random places, a tenth of them twice."""
    chance = random.Random(11)
    keeper = place.keeper("one")
    sent: dict[str, list[int]] = {"mer_a": [], "mer_b": [], "mer_c": []}
    for merchant in sent:
        place.arrive(0, merchant=merchant)
    settle(keeper)
    for _ in range(60):
        for merchant, numbers in sent.items():
            fresh = [chance.randrange(1, 500) for _ in range(7)]
            numbers.extend(fresh)
            place.arrive(*fresh[:5], merchant=merchant, partition=chance.randrange(4))
            for number in fresh[5:]:
                place.set_aside(number, merchant=merchant)
        if chance.random() < 0.6:
            settle(keeper)
    settle(keeper)
    for merchant, numbers in sent.items():
        assert place.gaps(merchant) == missing(0, numbers)


def test_test_events_count_by_their_headers(place: Numbered) -> None:
    """Their topic may be absent at first; positions are kept, and a keeper that follows reads on from them."""
    settings = place.settings
    keeper = place.keeper("one")
    place.arrive(1, 9)
    settle(keeper)
    assert place.gaps() == [(2, 8)]
    topics.apply(settings)
    client = producer(settings.kafka, linger_ms=5, delivery_timeout_seconds=30, on_fatal=lambda _: None)

    def send(*numbers: int) -> None:
        for number in numbers:
            client.produce(
                f"{settings.installation.test_prefix}.events", b"{}", f"dep_{number}", headers=_headers(number)
            )
        assert client.flush(30) == 0

    send(2, 4)
    client.produce(f"{settings.installation.test_prefix}.events", b"{}", "dep_x", headers=[("ce_sequence", "8")])
    one = place.keeper("one")
    _settle_until(one, lambda: place.gaps() == [(3, 3), (5, 8)])
    one.leave()
    two = place.keeper("two")
    send(5)
    _settle_until(two, lambda: place.gaps() == [(3, 3), (6, 8)])
    stored = place.road.rows("SELECT sum(next_number)::int FROM sequence_sources WHERE source = 'test-events'")
    assert stored == [(4,)]
    # The first keeper comes back with positions of its own that are old: it reads nothing twice and nothing less.
    two.leave()
    send(6)
    _settle_until(one, lambda: place.gaps() == [(3, 3), (7, 8)])


def _settle_until(keeper: Turns, holds: Callable[[], bool]) -> None:
    for _ in range(200):
        settle(keeper)
        if holds():
            return
    raise AssertionError("it did not come about in 200 turns")


def _headers(number: int) -> list[tuple[str, str | bytes | None]]:
    return EventHeaders(
        id=f"evt_test_{number}",
        type="deposit.open",
        source="/gateway",
        subject=f"dep_{number}",
        time="2026-05-01T10:00:00Z",
        object_kind="deposit_order",
        status="open",
        version=1,
        merchant=MERCHANT,
        sequence=number,
        livemode=False,
        received_at="2026-05-01T10:00:00Z",
        origin="webhook",
        key_id="k1",
    ).encode()
