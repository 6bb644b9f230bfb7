"""Balance transactions: recorded once, immutable, and nothing else hangs on them."""

import pytest

from tests.integration.sinks.conftest import Feed, Road
from tests.integration.sinks.deliveries import Delivery, movement

INBOX = "SELECT event_id, verdict, reason FROM pg_webhook_inbox ORDER BY partition, arrival_seq"
SET_ASIDE = "SELECT event_id, reason FROM quarantined_events ORDER BY id"


@pytest.fixture
def feed(road: Road) -> Feed:
    """Deliveries in partition 0."""
    return Feed(road.applier(0))


def test_balance_transactions_are_kept_once(road: Road, feed: Feed) -> None:
    """Whose it is, raw balance and all; the same again is known, other content is set aside, JSON null is SQL NULL."""
    feed.apply(
        movement("b1", "btxn-1"),
        movement("b2", "btxn-1", balance_after={"pending_minor": 7}),
        movement("b3", "btxn-1", direction="debit"),
        movement("b4", "btxn-2", balance_after=None, source=None),
    )
    feed.apply(movement("b5", "btxn-1"), movement("b6", "btxn-1", source={"id": "dep-2"}))
    assert road.rows(INBOX) == [
        ("b1", "immutable", None),
        ("b2", "immutable", "already_recorded"),
        ("b4", "immutable", None),
        ("b5", "immutable", "already_recorded"),
    ]
    assert road.rows(SET_ASIDE) == [("b3", "transaction_collision"), ("b6", "transaction_collision")]
    assert road.rows(
        "SELECT btxn_id, type, direction, amount_minor, bucket_from, bucket_to, source_id, created_at::text,"
        " merchant_id, balance_after FROM pg_balance_txns ORDER BY 1"
    ) == [
        (
            "btxn-1",
            "deposit",
            "credit",
            5_000,
            None,
            "pending",
            "dep-1",
            "2026-05-01 09:30:00.123456+00",
            "mer_1",
            {"pending_minor": 5_000},
        ),
        ("btxn-2", "deposit", "credit", 5_000, None, "pending", None, "2026-05-01 09:30:00.123456+00", "mer_1", None),
    ]
    assert road.one("SELECT count(*) FROM pg_outbox") == 0


def test_a_version_that_the_headers_give_a_balance_transaction_means_nothing(road: Road, feed: Feed) -> None:
    """Its body has none, so there is nothing to compare it with."""
    event = movement("b1", "btxn-1")
    feed.apply(Delivery("b1", "btxn-1", 4, "", event.body, kind=event.kind))
    assert road.rows(INBOX) == [("b1", "immutable", None)]
