"""Chunks and reversals: kept from late events too, the first one seen stays, and what contradicts it is refused."""

from typing import Any, LiteralString

import psycopg
import pytest

from tests.integration.sinks.conftest import Feed, Road
from tests.integration.sinks.deliveries import chunk, taken_back, withdrawal

INBOX = "SELECT event_id, verdict, reason FROM pg_webhook_inbox ORDER BY partition, arrival_seq"
SET_ASIDE = "SELECT event_id, reason FROM quarantined_events ORDER BY id"


@pytest.fixture
def feed(road: Road) -> Feed:
    """Deliveries in partition 0."""
    return Feed(road.applier(0))


@pytest.mark.parametrize("apart", [False, True])
def test_chunks_of_late_events_are_kept(road: Road, feed: Feed, apart: bool) -> None:
    """Chunks land v9, v11, v7: the totals are those of v11, and all three are there."""
    life = [
        withdrawal(
            f"f{version}", "wdr-1", version, "partially_filled", remaining_minor=rest, fill=chunk(f"leg-{version}")
        )
        for version, rest in ((9, 30_000), (11, 10_000), (7, 70_000))
    ]
    for batch in [[event] for event in life] if apart else [life]:
        feed.apply(*batch)
    assert road.rows("SELECT pg_version, remaining_minor FROM pg_withdrawals") == [(11, 10_000)]
    assert road.one("SELECT count(*) FROM pg_withdrawal_fills") == 3
    assert road.rows(INBOX)[-1] == ("f7", "late", "late_fact")


def test_facts_of_one_batch_know_each_other(road: Road, feed: Feed) -> None:
    """A chunk of another withdrawal that came earlier in the very batch refuses the later one, also by transaction."""
    back: dict[str, Any] = {"status": "partially_filled", "version": 2}
    feed.apply(
        withdrawal("a", "wdr-1", 1, "partially_filled", fill=chunk("leg-1")),
        withdrawal("b", "wdr-2", 1, "partially_filled", fill=chunk("leg-1")),
        withdrawal("c", "wdr-1", fill=chunk("leg-1"), reversal=taken_back("leg-1"), **back),
        withdrawal("d", "wdr-2", fill=chunk("leg-1"), reversal=taken_back("leg-1"), **back),
        withdrawal(
            "e",
            "wdr-3",
            fill=chunk("leg-9", balance_transaction_id="rtxn-leg-1"),
            reversal=taken_back("leg-9", reverses_balance_transaction_id="rtxn-leg-1"),
            **back,
        ),
    )
    assert road.rows(SET_ASIDE) == [("b", "fill_collision"), ("d", "reversal_collision"), ("e", "reversal_collision")]
    assert road.rows("SELECT pg_withdrawal_id FROM pg_withdrawals") == [("wdr-1",)]


def test_a_fee_that_differs_is_counted_and_kept_as_sent(road: Road, feed: Feed) -> None:
    """The running total gives 802 for the first chunk: 803 is stored and shown."""
    event = withdrawal(
        "a", "wdr-1", 1, "partially_filled", filled_minor=30_000, fill=chunk("leg-1", fee_recognized_minor=803)
    )
    assert feed.apply(event).fee_differs == 1
    assert road.one("SELECT fee_recognized_minor FROM pg_withdrawal_fills") == 803


CHUNK = "INSERT INTO pg_withdrawal_fills (leg_ref, pg_withdrawal_id, amount_minor) VALUES ('leg', %s, 1)"
REVERSAL = (
    "INSERT INTO pg_withdrawal_fill_reversals (leg_ref, pg_withdrawal_id, reason_code, reverses_balance_transaction_id,"
    " reversal_balance_transaction_id, reversed_at, amount_minor, status_snapshot)"
    " VALUES ('leg', %s, %s, %s, %s, now(), 1, 'open')"
)


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (CHUNK, ("nobody",)),
        (REVERSAL, ("nobody", "BANK_RECALL", "a", "b")),
        (REVERSAL, ("wdr-1", "WHIM", "a", "b")),
        (REVERSAL, ("wdr-1", "BANK_RECALL", "btxn-x", "b")),
        (REVERSAL, ("wdr-1", "BANK_RECALL", "a", "rtxn-x")),
        ("DELETE FROM pg_withdrawals WHERE pg_withdrawal_id = %s", ("wdr-1",)),
    ],
)
def test_the_tables_hold_their_own_rules(
    road: Road, feed: Feed, statement: LiteralString, values: tuple[str, ...]
) -> None:
    """Facts name a withdrawal that is there, reasons are the three, and a transaction is reversed once."""
    feed.apply(withdrawal("r", "wdr-1", 1, "open", fill=chunk("x"), reversal=taken_back("x")))
    with pytest.raises(psycopg.IntegrityError):
        road.execute(statement, values)
