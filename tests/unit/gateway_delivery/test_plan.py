"""What the gateway sets out to do: first attempts near the creation, some late, some twice, some never."""

from datetime import timedelta
from itertools import pairwise

import pytest

from tallyhook.errors import UsageError
from tallyhook.gateway.plan import LONGEST_JITTER, LONGEST_REPEAT, SHORTEST_REPEAT, Delivery, Mischief, deliveries
from tallyhook.gateway.world.generate import generate
from tallyhook.gateway.world.model import World
from tests.unit.gateway_delivery.stepping import event, world_of


def world_of_pairs(pairs: int) -> World:
    """Two events of each of so many objects, an hour apart."""
    return world_of(
        event(2 * number + half, f"dep_{number}", after_seconds=3600.0 * half + number)
        for half in (0, 1)
        for number in range(pairs)
    )


def overtaken(planned: list[Delivery]) -> int:
    """How many events come after a later one of their object."""
    by_object: dict[str, list[Delivery]] = {}
    for delivery in planned:
        by_object.setdefault(delivery.event.object_id, []).append(delivery)
    return sum(first.due > second.due for found in by_object.values() for first, second in pairwise(found))


def test_without_mischief_each_object_is_in_order_and_soon() -> None:
    """Within two seconds of the creation, and never before an earlier event of the object."""
    world = generate(3, 60)
    planned = deliveries(world, Mischief())
    assert [delivery.event.id for delivery in planned] == [event.id for event in world.events]
    assert overtaken(planned) == 0
    assert all(timedelta(0) <= delivery.due - delivery.event.created_at <= LONGEST_JITTER for delivery in planned)
    assert all(delivery.repeat_after is None and delivery.purpose == "first" for delivery in planned)


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0, 0), (0.3, 240, 360), (1.0, 1000, 1000)])
def test_a_share_of_the_events_is_overtaken(share: float, low: int, high: int) -> None:
    """Of a thousand objects with two events each."""
    assert low <= overtaken(deliveries(world_of_pairs(1000), Mischief(reorder=share))) <= high


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0, 0), (0.25, 400, 600), (1.0, 2000, 2000)])
def test_a_share_of_the_events_is_sent_again(share: float, low: int, high: int) -> None:
    """After a second to a day."""
    planned = deliveries(world_of_pairs(1000), Mischief(duplicates=share))
    repeats = [delivery.repeat_after for delivery in planned if delivery.repeat_after is not None]
    assert low <= len(repeats) <= high
    assert all(SHORTEST_REPEAT <= after <= LONGEST_REPEAT for after in repeats)


def test_the_same_seed_makes_the_same_plan() -> None:
    """And another seed another."""
    mischief = Mischief(reorder=0.5, duplicates=0.5)
    plans = [[(d.due, d.repeat_after) for d in deliveries(generate(seed, 50), mischief)] for seed in (4, 4, 5)]
    assert plans[0] == plans[1] != plans[2]


def test_withheld_and_unsubscribed_events_are_not_planned() -> None:
    """They are no deliveries at all."""
    world = world_of([event(1), event(2, withheld=True), event(3)])
    assert [d.event.id for d in deliveries(world, Mischief())] == ["evt_1", "evt_3"]
    assert deliveries(world, Mischief(), {"deposit.open"}) == []
    many = generate(9, 60, withhold=7)
    assert len(deliveries(many, Mischief(reorder=1))) == len(many.events) - 7


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_out_of_bounds_is_refused(share: float) -> None:
    """0 to 1."""
    with pytest.raises(UsageError, match="--reorder"):
        Mischief(reorder=share)
    with pytest.raises(UsageError, match="--duplicates"):
        Mischief(duplicates=share)
