"""The expected end of a simulated world, held against what the reference handler leaves, in orders of all kinds."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import LiteralString

import pytest
from psycopg import sql

from sinks.migrations import upgrade
from tallyhook.gateway.world.expected import differences
from tallyhook.gateway.world.generate import generate
from tallyhook.gateway.world.model import SimEvent, World
from tallyhook.gateway.world.named import WITHDRAWAL_DAY, scenario_named
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings, Installation
from tests.reference.handler import Delivery, Handler

RECEIVED_AT = datetime(2026, 8, 21, tzinfo=UTC)
Order = Callable[[random.Random, Sequence[SimEvent]], list[SimEvent]]


def in_order(_rng: random.Random, events: Sequence[SimEvent]) -> list[SimEvent]:
    """As they were made."""
    return list(events)


def backwards(_rng: random.Random, events: Sequence[SimEvent]) -> list[SimEvent]:
    """The newest first."""
    return list(reversed(events))


def shuffled_with_repeats(rng: random.Random, events: Sequence[SimEvent]) -> list[SimEvent]:
    """In any order, every fifth one twice or more."""
    arriving = [*events, *rng.choices(list(events), k=len(events) // 5)]
    rng.shuffle(arriving)
    return arriving


ORDERS: dict[str, Order] = {
    "in order": in_order,
    "backwards": backwards,
    "shuffled": shuffled_with_repeats,
    "shuffled anew": shuffled_with_repeats,
}


@pytest.fixture
def handler(database_settings: DatabaseSettings, installation: Installation) -> Iterator["Service"]:
    """The hand-written service of the merchant on a schema of its own."""
    upgrade(database_settings, installation)
    with connect(database_settings, "reference") as connection:
        connection.execute("SET synchronous_commit = off")
        yield Service(connection, installation.schema_name)


class Service:
    """Takes deliveries one by one, and the correlations somewhere between them."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self.connection, self.schema = connection, schema
        self._handler = Handler(connection, schema)
        self._offset = 0

    def live(self, world: World, rng: random.Random, events: Sequence[SimEvent]) -> None:
        """Delivers the events; each correlation that is ever written is written at some moment before the end."""
        places = [(rng.randint(0, len(events)), row) for row in world.correlations if row.written_at is not None]
        places.sort(key=lambda place: place[0], reverse=True)
        for number, event in enumerate(events):
            while places and places[-1][0] <= number:
                row = places.pop()[1]
                self._handler.correlate(row.pg_deposit_id, row.merchant_reference, row.our_order_id, row.our_user_id)
            self.deliver(event)
        for _, row in places:
            self._handler.correlate(row.pg_deposit_id, row.merchant_reference, row.our_order_id, row.our_user_id)
        self._handler.look_for_parked()

    def deliver(self, event: SimEvent) -> None:
        """One delivery, all objects in one partition."""
        self._handler.deliver(event.body, Delivery(event.id, event.object_id, 0, 0, self._offset, RECEIVED_AT))
        self._offset += 1

    def differences(self, world: World) -> list[str]:
        """What stands otherwise than it must."""
        return differences(world.expected, self.connection, self.schema)

    def execute(self, statement: LiteralString, *parameters: object) -> None:
        """A change by hand, which must be of one row at least."""
        assert self.connection.execute(statement, parameters).rowcount > 0


def delivered(world: World) -> list[SimEvent]:
    """The events that the gateway delivers."""
    return [event for event in world.events if not event.never_delivered]


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_of_arrival_ends_as_expected(handler: Service, order: str) -> None:
    """The story alone says what must stand at the end: the reference handler gets there by any road."""
    world = generate(seed=list(ORDERS).index(order), objects=110, withhold=40)
    assert len(world.scenarios) >= 48
    rng = random.Random(order)
    handler.live(world, rng, ORDERS[order](rng, delivered(world)))
    assert handler.differences(world) == []


def test_a_backfill_completes_the_end(handler: Service) -> None:
    """Without the chunk that is never delivered the day ends as `expected`, with it as `expected_complete`."""
    world = scenario_named(WITHDRAWAL_DAY, seed=3)
    handler.live(world, random.Random(3), delivered(world))
    assert handler.differences(world) == []
    incomplete = differences(world.expected_complete, handler.connection, handler.schema)
    (withheld,) = [event for event in world.events if event.never_delivered]
    assert any(withheld.id in sentence for sentence in incomplete)
    assert any("leg_ref" in sentence and "is not there" in sentence for sentence in incomplete)
    handler.deliver(withheld)
    assert differences(world.expected_complete, handler.connection, handler.schema) == []
    assert handler.differences(world) != []


def test_an_empty_database_lacks_everything(handler: Service) -> None:
    """Nothing arrived: each event, each object and each movement is named."""
    world = generate(seed=1, objects=50)
    found = handler.differences(world)
    for object_id in (*world.expected.deposits, *world.expected.withdrawals, *world.expected.transactions):
        assert any(object_id in sentence for sentence in found), object_id
    assert sum("must be processed" in sentence for sentence in found) == len(world.expected.processed)


def test_very_many_differences_are_counted(handler: Service) -> None:
    """The list stays bounded."""
    found = handler.differences(generate(seed=2, objects=250))
    assert len(found) == 1_001
    assert found[-1].startswith("And ")


TAMPERINGS: dict[str, tuple[LiteralString, str]] = {
    "a deposit goes back to a lower version": (
        "UPDATE pg_deposits SET pg_version = pg_version - 1 WHERE status = 'settled'", "pg_version is"),
    "a deposit has another amount": (
        "UPDATE pg_deposits SET fee_total_minor = 0, credited_amount_minor = amount_received_minor",
        "fee_total_minor is"),
    "a credit is lost": (
        "DELETE FROM pg_user_balance_entries WHERE entry_key LIKE '%%:credit'", "the user's entries are"),
    "a debit is lost": (
        "DELETE FROM pg_user_balance_entries WHERE entry_key LIKE '%%:debit'", "the user's entries are"),
    "a balance drifts": ("UPDATE pg_user_balances SET balance_minor = balance_minor + 1", "the balance is"),
    "a credit mark is lost": (
        "UPDATE pg_deposits SET credited_user_at = NULL WHERE status = 'settled'", "credited and reversed are marked"),
    "a release is lost": ("DELETE FROM pg_outbox WHERE topic = 'release_goods'", "release_goods left 0 times"),
    "a release left with another key": (
        "UPDATE pg_outbox SET dedupe_key = dedupe_key || '!' WHERE topic = 'release_goods'", "must not be"),
    "a payload is wrong": (
        "UPDATE pg_outbox SET payload = payload || '{\"ticket\": \"?\"}' WHERE topic = 'close_withdrawal'",
        "payload is"),
    "a balance entry never left": ("DELETE FROM pg_outbox WHERE topic = 'balance_entry'", "balance entries that left"),
    "a withdrawal forgets its reference": (
        "UPDATE pg_withdrawals SET our_ref = 'other' WHERE our_ref IS NOT NULL", "our_ref is 'other'"),
    "a total is added up": ("UPDATE pg_withdrawals SET filled_minor = filled_minor + 1", "filled_minor is"),
    "a refund is not marked": (
        "UPDATE pg_withdrawals SET refund_enqueued_at = NULL WHERE status = 'expired'", "refund_enqueued is False"),
    "a recalled order is closed": (
        "UPDATE pg_withdrawals SET closed_at = now() WHERE replacement_withdrawal_id IS NOT NULL", "closed is True"),
    "a settled order is not closed": ("UPDATE pg_withdrawals SET closed_at = NULL", "closed is False"),
    "a replacement is forgotten": (
        "UPDATE pg_withdrawals SET replacement_withdrawal_id = NULL WHERE replacement_withdrawal_id IS NOT NULL",
        "replacement_withdrawal_id is None"),
    "a chunk is lost": ("DELETE FROM pg_withdrawal_fills", "is not there"),
    "a chunk's fee is computed": (
        "UPDATE pg_withdrawal_fills SET fee_recognized_minor = fee_recognized_minor + 1", "fee_recognized_minor is"),
    "a chunk is not marked as reversed": (
        "UPDATE pg_withdrawal_fills SET reversed_at = NULL WHERE reversed_at IS NOT NULL", "reversed is False"),
    "a tombstone is lost": ("DELETE FROM pg_withdrawal_fill_reversals", "reversals: leg_ref"),
    "a compensation is lost": ("DELETE FROM pg_outbox WHERE topic = 'compensate_reversed_fill'", "is not there"),
    "a movement is lost": ("DELETE FROM pg_balance_txns WHERE type = 'withdrawal_fee_refund'", "is not recorded"),
    "a movement is counted in another bucket": (
        "UPDATE pg_balance_txns SET bucket_to = 'pending' WHERE type = 'deposit_clearing'", "Bucket pending"),
    "an event is forgotten": ("DELETE FROM pg_webhook_inbox WHERE object_kind = 'payment_link'", "it is not known"),
    "an event waits for ever": (
        "UPDATE pg_webhook_inbox SET processed_at = NULL, parked_reason = 'snapshot' WHERE version IS NULL",
        "it is parked (snapshot)"),
    "what waits was processed": (
        "UPDATE pg_webhook_inbox SET processed_at = now(), parked_reason = NULL WHERE parked_reason = 'correlation'",
        "it is processed, must be parked (correlation)"),
}  # fmt: skip


def test_every_tampering_is_found(handler: Service) -> None:
    """A check that cannot fail proves nothing: each change by hand is told, and nothing is once it is undone."""
    world = scenario_named("every_life", seed=5)
    handler.live(world, random.Random(5), delivered(world))
    assert handler.differences(world) == []
    for name, (statement, sentence) in TAMPERINGS.items():
        with undone(handler.connection):
            handler.execute(statement)
            found = differences_within(world, handler)
        assert any(sentence in difference for difference in found), (name, found[:5])
    assert handler.differences(world) == []


@contextmanager
def undone(connection: Connection) -> Iterator[None]:
    """What happens inside is taken back."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def differences_within(world: World, handler: Service) -> list[str]:
    """The differences as a connection sees them that has changed something itself."""
    return differences(world.expected, handler.connection, handler.schema)


def test_flags_cannot_be_tampered_with_but_are_compared(handler: Service) -> None:
    """An overpayment flag that never came is told."""
    world = scenario_named("deposit_overpaid_by_another_transfer", seed=9)
    flagged = [event for event in delivered(world) if b"claim_id" not in event.body]
    handler.live(world, random.Random(9), flagged)
    assert any("its overpayment flags are {}" in sentence for sentence in handler.differences(world))


def test_rows_of_what_must_not_be_there_are_told(handler: Service) -> None:
    """Test traffic that got into the live tables, and a deposit that nobody knows."""
    world = scenario_named("every_life", seed=6)
    handler.live(world, random.Random(6), delivered(world))
    stranger = next(event for event in world.events if not event.livemode and event.object_kind == "withdrawal_order")
    handler.connection.execute(
        sql.SQL("INSERT INTO pg_withdrawals (pg_withdrawal_id, pg_version, status, amount_total_minor, remaining_minor)"
                " VALUES (%s, 1, 'open', 1, 1)"),
        (stranger.object_id,),
    )  # fmt: skip
    (sentence,) = handler.differences(world)
    assert sentence == f"Withdrawal {stranger.object_id}: version 1 is there, must not be."
