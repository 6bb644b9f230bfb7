"""Poison among withdrawals: it is found and set aside alone, also where it builds a row or waits for one."""

from typing import Any

import pytest

from tests.integration.sinks.conftest import Feed, Road
from tests.integration.sinks.deliveries import Delivery, chunk, deposit, movement, taken_back, withdrawal

SET_ASIDE = "SELECT event_id, reason FROM quarantined_events ORDER BY id"
CAUSES = "SELECT causation_id FROM pg_outbox ORDER BY partition, seq"
WAITING = "SELECT event_id FROM pg_webhook_inbox WHERE processed_at IS NULL ORDER BY arrival_seq"


@pytest.fixture
def feed(road: Road) -> Feed:
    """Deliveries in partition 0."""
    return Feed(road.applier(0))


def refuse(road: Road, event_id: str) -> None:
    """Lets the database refuse what one event writes, as it refuses a value that no check of ours has met."""
    road.execute(f"ALTER TABLE pg_outbox ADD CHECK (causation_id <> '{event_id}')".encode())


def life() -> list[Delivery]:
    """Three that wait, the builder, one after it; others before and between."""
    return [
        withdrawal("other-1", "wdr-0", 1, "open"),
        withdrawal("m2", "wdr-1", 2, "open", sparse=True),
        withdrawal("f3", "wdr-1", 3, "partially_filled", sparse=True, fill=chunk("leg-1")),
        withdrawal("other-2", "wdr-0", 2, "open"),
        withdrawal("m4", "wdr-1", 4, "open", sparse=True),
        withdrawal("c1", "wdr-1", 1, "open"),
        withdrawal("x5", "wdr-1", 5, "open", sparse=True),
    ]


@pytest.mark.parametrize("bad", ["m2", "f3", "m4", "x5", "other-2"])
@pytest.mark.parametrize("apart", [False, True])
def test_one_that_the_database_refuses(road: Road, feed: Feed, bad: str, apart: bool) -> None:
    """Whether it waits in the database or in the very batch: it alone is set aside, the others keep their order."""
    refuse(road, bad)
    for batch in [[event] for event in life()] if apart else [life()]:
        feed.apply(*batch)
    assert road.rows(SET_ASIDE) == [(bad, "database_refused")]
    effects = [cause for (cause,) in road.rows(CAUSES)]
    expected = ["other-1", "other-2", "c1", "m2", "f3", "m4", "x5"]
    assert effects == [cause for cause in expected if cause != bad]
    assert road.rows(WAITING) == []
    assert road.one("SELECT count(*) FROM pg_withdrawal_fills") == (bad != "f3")


@pytest.mark.parametrize("apart", [False, True])
def test_a_builder_that_the_database_refuses(road: Road, feed: Feed, apart: bool) -> None:
    """It builds nothing, and those that wait for the row are not blamed: they go on waiting."""
    refuse(road, "c1")
    for batch in [[event] for event in life()] if apart else [life()]:
        feed.apply(*batch)
    assert road.rows(SET_ASIDE) == [("c1", "database_refused")]
    assert [event_id for (event_id,) in road.rows(WAITING)] == ["m2", "f3", "m4", "x5"]
    feed.apply(withdrawal("c1-again", "wdr-1", 1, "open"))
    assert [cause for (cause,) in road.rows(CAUSES)] == [
        *("other-1", "other-2", "c1-again", "m2", "f3", "m4", "x5"),
    ]


def test_values_that_no_column_takes_are_found_before_the_database(road: Road, feed: Feed) -> None:
    """Numbers out of range, dates that are none, facts without their parts: each has its reason."""
    back: dict[str, Any] = {"fill": chunk("leg-1"), "reversal": taken_back("leg-1")}
    feed.apply(
        withdrawal("a", "wdr-1", 1, "open", max_splits=1 << 15),
        withdrawal("b", "wdr-1", 1, "open", filled_minor=1 << 63),
        withdrawal("c", "wdr-1", 1, "open", sparse=True, settled_splits="3"),
        withdrawal("d", "wdr-1", 1, "open", fill=chunk("leg-1", sequence=40_000)),
        withdrawal("e", "wdr-1", 1, "open", fill=chunk("leg-1", settled_at="2026-02-30T00:00:00Z")),
        withdrawal("f", "wdr-1", 1, "open", fill=chunk("leg-1"), reversal=taken_back("leg-1", reason_code="WHIM")),
        withdrawal("g", "wdr-1", 1, "open", created_at="yesterday", **back),
        movement("h", "btxn-1", amount_minor=1 << 63),
        movement("i", "btxn-1", created_at="2026-05-01T09:30:00"),
        withdrawal("good", "wdr-1", 1, "open"),
    )
    assert road.rows(SET_ASIDE) == [
        ("a", "body_shape"),
        ("b", "body_shape"),
        ("c", "body_shape"),
        ("d", "fill_shape"),
        ("e", "fill_shape"),
        ("f", "reversal_shape"),
        ("g", "reversal_shape"),
        ("h", "body_shape"),
        ("i", "body_date"),
    ]
    assert road.rows("SELECT event_id FROM pg_webhook_inbox") == [("good",)]


def test_a_refund_that_no_bigint_holds(road: Road, feed: Feed) -> None:
    """Each amount fits and their sum does not: the event is refused by its rules, and its withdrawal goes on."""
    most = (1 << 63) - 1
    feed.apply(
        withdrawal("c1", "wdr-1", 1, "open"),
        withdrawal("x2", "wdr-1", 2, "expired", filled_minor=most, fee_recognized_minor=most),
        withdrawal("x3", "wdr-1", 3, "expired", fee_recognized_minor=0, refunded_minor=100_000),
    )
    assert road.rows(SET_ASIDE) == [("x2", "body_shape")]
    assert road.rows("SELECT pg_version, refund_enqueued_at IS NOT NULL FROM pg_withdrawals") == [(3, True)]


def test_a_poison_withdrawal_among_a_thousand_of_all_kinds(road: Road, feed: Feed) -> None:
    """Halving finds it, and the others are applied, each once."""
    road.correlate(*(f"dep-{number}" for number in range(300)))
    events: list[Delivery] = []
    for number in range(300):
        events.append(deposit(f"d{number}", f"dep-{number}", 1, "settled"))
        events.append(withdrawal(f"m{number}", f"wdr-{number}", 2, "open", sparse=True))
        events.append(withdrawal(f"c{number}", f"wdr-{number}", 1, "open"))
        if number % 3 == 0:
            events.append(movement(f"b{number}", f"btxn-{number}"))
    refuse(road, "m150")
    result = feed.apply(*events)
    assert (len(events), result.taken, result.quarantined) == (1000, 1000, {"database_refused": 1})
    assert road.rows(SET_ASIDE) == [("m150", "database_refused")]
    assert road.one("SELECT count(*) FROM pg_webhook_inbox WHERE processed_at IS NOT NULL") == 999
    assert road.one("SELECT count(*) FROM pg_outbox WHERE aggregatetype = 'withdrawal'") == 599
    assert road.one("SELECT count(*) FROM pg_user_balance_entries") == 300
