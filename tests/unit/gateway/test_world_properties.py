"""What the gateway guarantees, and what money must obey, in every world of every seed."""

import itertools
import json
import random
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingress.envelope import read
from tallyhook.errors import UsageError
from tallyhook.gateway.signing import webhook_id
from tallyhook.gateway.world.generate import OBJECTS_MAX, OPEN_ENDED, SCENARIOS, generate
from tallyhook.gateway.world.model import BUCKETS, World
from tallyhook.gateway.world.names import Names
from tallyhook.gateway.world.strangers import TEST_SCENARIOS
from tests.unit.gateway.reading import body_of

MAX_ID_BYTES = 512
RECALLED_AFTER_THE_END = ("recall_with_replacement", "recall_at_once", "recall_twice", "recall_after_expiry")
"""Their totals stay as they were."""
SEEDS = st.integers(0, 2**63)
WORLDS = st.builds(generate, SEEDS, st.integers(1, 60), withhold=st.sampled_from((0, 0, 1, 7, 1_000)))
worlds_of_any_seed = settings(max_examples=15, deadline=None)


@worlds_of_any_seed
@given(WORLDS)
def test_sequence_and_versions_rise(world: World) -> None:
    """One counter over all events in order of creation, without a hole; versions of an object rise, no two alike."""
    assert [event.sequence for event in world.events] == [
        world.events[0].sequence + place for place in range(len(world.events))
    ]
    created = [event.created_at for event in world.events]
    assert created == sorted(created)
    assert world.started_at <= created[0]
    assert created[-1] == world.ended_at
    assert all(moment.microsecond % 1_000 == 0 and moment.utcoffset() == timedelta(0) for moment in created)
    versions: dict[str, list[int]] = defaultdict(list)
    moments: dict[str, list[datetime]] = defaultdict(list)
    for event in world.events:
        if event.version is not None:
            versions[event.object_id].append(event.version)
            moments[event.object_id].append(event.created_at)
    for object_id, numbers in versions.items():
        assert all(low < high for low, high in itertools.pairwise(numbers))
        assert all(low < high for low, high in itertools.pairwise(moments[object_id]))


@worlds_of_any_seed
@given(WORLDS)
def test_bodies_say_what_the_events_say(world: World) -> None:
    """The door's own reader agrees with every member; ids fit into the header that carries them."""
    for event in world.events:
        envelope = read(event.body, max_id_bytes=MAX_ID_BYTES)
        assert (envelope.id, envelope.type, envelope.livemode) == (event.id, event.type, event.livemode)
        assert (envelope.object_id, envelope.kind) == (event.object_id, event.object_kind)
        assert (envelope.version, envelope.status) == (event.version, event.status)
        assert (envelope.sequence, envelope.merchant) == (event.sequence, world.merchant_id)
        assert body_of(event)["created_at"] == envelope.created_at
        assert webhook_id(event.id) == event.id


@worlds_of_any_seed
@given(WORLDS)
def test_ids_are_given_once(world: World) -> None:
    """No two events share one, nor two objects of different kinds; merchant references are unique."""
    assert len({event.id for event in world.events}) == len(world.events)
    kinds = {(event.object_id, event.object_kind) for event in world.events}
    assert len({object_id for object_id, _ in kinds}) == len(kinds)
    references = [row.merchant_reference for row in world.correlations]
    assert len(set(references)) == len(references)
    assert {row.pg_deposit_id for row in world.correlations} == {
        found.id for found in world.objects.values() if found.kind == "deposit_order"
    }


@worlds_of_any_seed
@given(WORLDS)
def test_the_wallet_adds_up(world: World) -> None:
    """Each movement's balance_after is the one before and itself; no bucket falls below zero; the API's is the last."""
    held = dict.fromkeys(BUCKETS, 0)
    for movement in world.transactions:
        assert movement.amount_minor > 0
        if movement.bucket_from is not None:
            held[movement.bucket_from] -= movement.amount_minor
        if movement.bucket_to is not None:
            held[movement.bucket_to] += movement.amount_minor
        assert dict(movement.balance_after) == held
        assert min(held.values()) >= 0
        assert json.loads(movement.body)["balance_after"] == {f"{name}_minor": minor for name, minor in held.items()}
    assert dict(world.balance_at(world.ended_at)) == held
    assert dict.fromkeys(BUCKETS, 0) | dict(world.expected_complete.bucket_sums) == held
    assert dict(world.balance_at(world.started_at - timedelta(seconds=1))) == dict.fromkeys(BUCKETS, 0)


@worlds_of_any_seed
@given(WORLDS)
def test_every_movement_has_its_event(world: World) -> None:
    """The events tell of the same movements as the API, and the order they come from is named."""
    told = [event for event in world.events if event.object_kind == "balance_transaction" and event.livemode]
    assert [event.object_id for event in told] == [movement.id for movement in world.transactions]
    for event, movement in zip(told, world.transactions, strict=True):
        assert body_of(event)["data"]["object"] == json.loads(movement.body)
        assert event.type.startswith("balance.")
        assert (event.version, event.status) == (None, "")
        assert movement.source_id is None or movement.source_id in world.objects


@worlds_of_any_seed
@given(WORLDS)
def test_what_was_locked_is_paid_or_given_back(world: World) -> None:
    """A withdrawal that has ended holds nothing; one that runs holds what is neither filled nor charged."""
    locked: Counter[str] = Counter()
    for movement in world.transactions:
        if movement.source_id is not None:
            locked[movement.source_id] += movement.amount_minor * (
                (movement.bucket_to == "locked") - (movement.bucket_from == "locked")
            )
    for withdrawal in world.expected_complete.withdrawals.values():
        (fee,) = withdrawal.fee_recognized_minor if len(withdrawal.fee_recognized_minor) == 1 else (None,)
        if withdrawal.status in ("settled", "expired", "canceled", "rejected"):
            assert locked[withdrawal.id] == 0, withdrawal
        elif fee is not None and withdrawal.total_locked_minor is not None:
            assert locked[withdrawal.id] == withdrawal.total_locked_minor - withdrawal.filled_minor - fee


@worlds_of_any_seed
@given(WORLDS)
def test_totals_and_chunks_agree(world: World) -> None:
    """Filled, reserved and remaining make the order; chunks that stand make filled, save for absorbed dust."""
    fees = defaultdict(list)
    for event in world.events:
        if event.object_kind != "withdrawal_order":
            continue
        data = body_of(event)["data"]
        if "fill" in data and event.type == "withdrawal.filled":
            fees[event.object_id].append((data["object"], data["fill"]))
    for snapshots in fees.values():
        for order, fill in snapshots:
            filled, total, fee = order["filled_minor"], order["amount_total_minor"], order["fee_total_minor"]
            before = filled - fill["amount_minor"]
            assert order["fee_recognized_minor"] == fee * filled // total
            assert fill["fee_recognized_minor"] == fee * filled // total - fee * before // total
    for found in world.objects.values():
        if found.kind != "withdrawal_order":
            continue
        for state in found.states:
            order = json.loads(state.snapshot)
            reserved = order.get("reserved_minor", 0)
            assert order["filled_minor"] + order["remaining_minor"] + reserved == order["amount_total_minor"]
            assert (order["version"], order["status"]) == (state.version, state.status)
        ended = world.expected_complete.withdrawals[found.id]
        counted = sum(
            fill.amount_minor for fill in ended.fills if not fill.reversed or found.scenario in RECALLED_AFTER_THE_END
        )
        if found.scenario == "withdrawal_dust":
            assert counted < ended.filled_minor == ended.amount_total_minor
        else:
            assert counted == ended.filled_minor


@worlds_of_any_seed
@given(WORLDS)
def test_deposits_obey_the_money_rule(world: World) -> None:
    """All five amounts agree wherever a deposit is settled or reversed; the user gets what was received."""
    for event in world.events:
        if event.object_kind == "deposit_order" and event.status in ("settled", "reversed"):
            o = body_of(event)["data"]["object"]
            ordered, transferred = o["ordered_amount_minor"], o["transferred_amount_minor"]
            received, fee, credited = o["amount_received_minor"], o["fee_total_minor"], o["credited_amount_minor"]
            assert received == min(ordered, transferred) > 0
            assert 0 <= fee <= received
            assert credited == received - fee
            ended = world.expected_complete.deposits.get(event.object_id)
            if ended is not None and ended.status == "settled":
                assert ended.credit_minor == received


@worlds_of_any_seed
@given(SEEDS, st.integers(1, 40), st.integers(0, 5))
def test_a_seed_gives_the_same_world(seed: int, objects: int, withhold: int) -> None:
    """Byte by byte, the expected end included."""
    assert generate(seed, objects, withhold=withhold) == generate(seed, objects, withhold=withhold)


@worlds_of_any_seed
@given(WORLDS)
def test_the_ends_account_for_every_event(world: World) -> None:
    """Each is processed, parked or absent; withheld ones lie inside the sequence, and are there once all has come."""
    everything = {event.id for event in world.events}
    live = {event.id for event in world.events if event.livemode}
    withheld = {event.id for event in world.events if event.never_delivered}
    for end, absent in ((world.expected, (everything - live) | withheld), (world.expected_complete, everything - live)):
        assert end.absent == absent
        assert end.processed | end.parked.keys() == everything - absent
        assert not end.processed & end.parked.keys()
        assert end.inbox_count == len(everything - absent)
    assert withheld <= live
    assert [world.events[place].never_delivered for place in (0, -1)] == [False, False]
    assert sum(world.expected.user_balances.values()) == sum(
        deposit.credit_minor or 0 for deposit in world.expected.deposits.values()
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"objects": 0}, "objects is 0"),
        ({"objects": OBJECTS_MAX + 1}, "must be 1..100000"),
        ({"objects": 1, "span_hours": -1.0}, "span_hours is -1.0"),
        ({"objects": 1, "span_hours": float("nan")}, "span_hours is nan"),
        ({"objects": 1, "withhold": -1}, "withhold is -1"),
        ({"objects": 1, "unknown_share": 1.01}, "unknown_share is 1.01"),
    ],
)
def test_arguments_have_bounds(arguments: dict[str, Any], message: str) -> None:
    """A wrong one is named, with its bounds."""
    with pytest.raises(UsageError, match=message):
        generate(1, **arguments)


def test_two_seeds_share_no_id() -> None:
    """Two worlds can be sent to one installation."""
    one, other = generate(1, 100), generate(2, 100)
    assert not {event.id for event in one.events} & {event.id for event in other.events}
    assert not one.objects.keys() & other.objects.keys()
    assert not one.expected.user_balances.keys() & other.expected.user_balances.keys()


def test_without_test_traffic_and_strange_members() -> None:
    """Both can be left out."""
    world = generate(3, 80, unknown_share=0.0, test_traffic=False)
    assert all(event.livemode for event in world.events)
    assert not world.scenarios.keys() & TEST_SCENARIOS.keys()
    assert world.scenarios.keys() == SCENARIOS.keys() - TEST_SCENARIOS.keys()
    assert not any(b"shadow_version" in event.body for event in world.events)


def test_names_are_of_many_shapes() -> None:
    """No prefix can be relied on, and texts beyond ASCII occur where a header does not forbid them."""
    names = Names(random.Random(1))
    deposits = [names.deposit() for _ in range(200)]
    assert any(name.startswith("wdr_") for name in deposits)
    assert any(not name.isascii() for name in deposits)
    assert any(len(name) > 180 for name in deposits)
    assert len(set(deposits)) == 200
    assert all("/" not in name for name in deposits)


@given(SEEDS)
@settings(max_examples=10)
def test_a_world_without_open_ends_has_none(seed: int) -> None:
    """Every deposit is correlated, and the last word on each order is a whole one."""
    world = generate(seed, 150, open_ends=False)
    assert OPEN_ENDED.isdisjoint(world.scenarios)
    assert all(row.written_at is not None for row in world.correlations)
    last = {event.object_id: event for event in world.events if event.object_kind == "withdrawal_order"}
    assert [event.id for event in last.values() if event.type == "withdrawal.matched"] == []
