"""A large batch of all kinds leaves what the same events leave one at a time."""

import random
from typing import Any

import pytest

from tests.integration.sinks.conftest import Feed, Road
from tests.integration.sinks.deliveries import Delivery, chunk, deposit, movement, overpayment, taken_back, withdrawal
from tests.integration.sinks.left import left

SEED = 20_260_517
EVENTS = 1_000
STATUSES = ("open", "partially_filled", "settled", "expired", "canceled", "rejected")
DEPOSIT_STATUSES = ("open", "slip_received", "settled", "reversed", "expired")


def mixed(chance: random.Random, events: int) -> list[Delivery]:
    """Events of some deposits, withdrawals and transactions, in any order, with copies, and now and then a bad one."""
    made: list[Delivery] = []
    while len(made) < events:
        name = f"evt-{len(made)}"
        kind = chance.random()
        if made and kind < 0.1:
            made.append(chance.choice(made))
        elif kind < 0.35:
            made.append(_deposit(name, chance))
        elif kind < 0.9:
            made.append(_withdrawal(name, chance))
        else:
            made.append(movement(name, f"btxn-{chance.randrange(40)}", amount_minor=chance.choice((5, 5, 5, 6))))
    return made


def _deposit(name: str, chance: random.Random) -> Delivery:
    number = chance.randrange(40)
    status = chance.choice(DEPOSIT_STATUSES)
    members: dict[str, Any] = {}
    if chance.random() < 0.2:
        members["overpayment"] = overpayment(f"clm-{chance.randrange(10)}", chance.choice((500, 500, 600)))
    if chance.random() < 0.05:
        members["is_terminal"] = "maybe"
    return deposit(name, f"dep-{number}", chance.randrange(1, 12), status, **members)


def _withdrawal(name: str, chance: random.Random) -> Delivery:
    object_id = f"wdr-{chance.randrange(60)}"
    members: dict[str, Any] = {
        "filled_minor": chance.randrange(100_000),
        "remaining_minor": chance.choice((0, 0, 30_000, 70_000)),
    }
    if chance.random() < 0.3:
        members["refunded_minor"] = chance.randrange(1_000)
    if chance.random() < 0.02:
        members["settled_splits"] = 1 << 20
    leg_ref = f"leg-{object_id if chance.random() < 0.95 else 'any'}-{chance.randrange(4)}"
    fill = reversal = None
    if chance.random() < 0.5:
        fill = chunk(leg_ref, 30_000 if chance.random() < 0.95 else 7)
        if chance.random() < 0.3:
            reversal = taken_back(leg_ref, balance_transaction_id=f"rtxn-{leg_ref if chance.random() < 0.9 else 'any'}")
    return withdrawal(
        name,
        object_id,
        chance.randrange(1, 30),
        chance.choice(STATUSES),
        fill=fill,
        reversal=reversal,
        sparse=chance.random() < 0.7,
        replacement=chance.choice((None, "wdr-next")) if reversal else None,
        **members,
    )


@pytest.mark.parametrize("batch", [EVENTS, 37])
@pytest.mark.parametrize("parked_rows_max", [5_000, 3])
def test_a_thousand_events_of_all_kinds(road: Road, twin: Road, batch: int, parked_rows_max: int) -> None:
    """Every row, number and effect is the same, over two partitions, also where little may wait in a transaction."""
    events = mixed(random.Random(SEED + batch + parked_rows_max), EVENTS)
    for place in (road, twin):
        place.correlate(*(f"dep-{number}" for number in range(0, 40, 2)))
    _apply(road, events, batch, parked_rows_max)
    _apply(twin, events, 1, 5_000)
    one, other = left(road), left(twin)
    for table in one:
        assert one[table] == other[table], table
    assert len(one["quarantined"]) > 20
    assert sum(row[2] for row in one["inbox"]) > 20
    assert {row[9] for row in one["inbox"]} == {"advanced", "late", "immutable", "parked"}


def _apply(road: Road, events: list[Delivery], batch: int, parked_rows_max: int) -> None:
    applier = road.applier(0, 1, parked_rows_max=parked_rows_max)
    feeds = [Feed(applier, partition, next_source=10_000 * partition) for partition in (0, 1)]
    records = []
    for event in events:
        records += feeds[sum(event.object_id.encode()) % 2].records(event)
    for start in range(0, len(records), batch):
        applier.apply(records[start : start + batch])
