"""Every life of the contract occurs, and has the trait that it is there for."""

import json
from datetime import timedelta

import pytest

from tallyhook.errors import UsageError
from tallyhook.gateway.world.generate import SCENARIOS, generate
from tallyhook.gateway.world.model import World
from tallyhook.gateway.world.named import EVERY_LIFE, names, scenario_named
from tests.unit.gateway.reading import body_of, events_of, orders_of, snapshots_of


@pytest.fixture(scope="module")
def world() -> World:
    """A world of 400 lives."""
    return generate(seed=11, objects=400, withhold=3)


def statuses(world: World, scenario: str) -> set[tuple[str, ...]]:
    """The statuses of each order that lives that life, in order of creation."""
    return {tuple(event.status for event in events_of(world, order.id)) for order in orders_of(world, scenario)}


def test_every_scenario_occurs() -> None:
    """From 200 lives on, whatever the seed; so it does in the smallest world that has room for all."""
    for seed in range(3):
        assert generate(seed, 200).scenarios.keys() == SCENARIOS.keys()
    assert scenario_named(EVERY_LIFE, 1).scenarios == dict.fromkeys(SCENARIOS, 1)


def test_each_life_can_be_had_alone() -> None:
    """By its name; another name is refused with a list."""
    for name in names():
        assert scenario_named(name, 2).events
    with pytest.raises(UsageError, match="no world named 'nonsense': choose one of withdrawal_day, every_life"):
        scenario_named("nonsense", 1)


def test_all_statuses_of_the_contract_occur(world: World) -> None:
    """And some that nobody knows."""
    seen: dict[str, set[str]] = {"deposit_order": set(), "withdrawal_order": set()}
    for event in world.events:
        if event.object_kind in seen:
            seen[event.object_kind].add(event.status)
    assert seen["deposit_order"] == {
        *("open", "slip_received", "under_review", "settled", "reversed", "expired", "canceled", "rejected"),
        *("รอธนาคาร", "bank_delayed", "frozen_by_bank"),
    }
    assert seen["withdrawal_order"] == {
        *("pending_approval", "open", "partially_filled", "settled", "expired", "canceled", "rejected"),
        *("on_hold", "under_investigation"),
    }


def test_a_late_slip_settles_what_had_expired(world: World) -> None:
    """The expiry says until when a slip is taken, 24 hours, and the settlement comes within."""
    for order in orders_of(world, "deposit_late_slip"):
        expired, settled = snapshots_of(world, order.id)[1], events_of(world, order.id)[-1]
        assert (expired["status"], expired["is_terminal"]) == ("expired", False)
        at = events_of(world, order.id)[1].created_at
        assert expired["late_slip_accepted_until"] == (at + timedelta(hours=24)).isoformat(
            timespec="milliseconds"
        ).replace("+00:00", "Z")
        assert settled.status == "settled"
        assert at < settled.created_at < at + timedelta(hours=24)
        assert world.expected_complete.deposits[order.id].credit_minor is not None


def test_reversed_deposits_are_credited_both_ways_or_not_at_all(world: World) -> None:
    """At the end the user has nothing of it; release and hold may have left, depending on which came first."""
    for scenario in (
        "deposit_reversed_while_pending",
        "deposit_reversed_after_clearing",
        "deposit_overpaid_then_reversed",
    ):
        for order in orders_of(world, scenario):
            ended = world.expected_complete.deposits[order.id]
            assert (ended.status, ended.credit_minor, ended.taken_back) == ("reversed", None, True)
            assert {effect.effect: effect.certain for effect in ended.effects if "goods" in effect.effect} == {
                "release_goods": False,
                "hold_goods": False,
            }


def test_money_is_reversed_from_where_it_lies(world: World) -> None:
    """From pending before it has cleared, from available afterwards, and never cleared in between."""
    for scenario, bucket, types in (
        ("deposit_reversed_while_pending", "pending", ["deposit_settlement", "deposit_reversal"]),
        (
            "deposit_reversed_after_clearing",
            "available",
            ["deposit_settlement", "deposit_clearing", "deposit_reversal"],
        ),
    ):
        for order in orders_of(world, scenario):
            movements = [movement for movement in world.transactions if movement.source_id == order.id]
            assert [movement.type for movement in movements] == types
            assert movements[-1].bucket_from == bucket
            assert len({movement.amount_minor for movement in movements}) == 1


def test_overpayments_of_both_causes(world: World) -> None:
    """One comes with the transfer, the other only in a later snapshot; the same claim stands in every one after it."""
    for order in orders_of(world, "deposit_overpaid_in_one_transfer"):
        opened, slip, settled = snapshots_of(world, order.id)
        assert "overpayment" not in opened
        assert slip["overpayment"] == settled["overpayment"]
        assert slip["overpayment"]["cause"] == "same_transfer_excess"
        excess = settled["transferred_amount_minor"] - settled["ordered_amount_minor"]
        assert slip["overpayment"]["amount_minor"] == excess
    for order in orders_of(world, "deposit_overpaid_by_another_transfer"):
        *before, last = snapshots_of(world, order.id)
        assert all("overpayment" not in snapshot for snapshot in before)
        assert (last["status"], last["overpayment"]["cause"]) == ("settled", "additional_transfer")
        assert (last["overpayment"]["status"], last["overpayment"]["action_required"]) == ("open", "contact_support")
        ended = world.expected_complete.deposits[order.id]
        assert list(ended.claims) == [ended.projected_claim]


def test_partial_deposits_say_so(world: World) -> None:
    """Less came than was ordered: that is what the user gets, and release_goods says partial."""
    for order in orders_of(world, "deposit_partly_paid"):
        last = snapshots_of(world, order.id)[-1]
        assert last["partial"] is True
        assert last["amount_received_minor"] == last["transferred_amount_minor"] < last["ordered_amount_minor"]
        (release,) = [e for e in world.expected_complete.deposits[order.id].effects if e.effect == "release_goods"]
        assert (release.certain, release.payload["partial"]) == (True, True)


def test_texts_for_people_are_thai_with_an_emoji_or_missing() -> None:
    """What is shown is the gateway's text, null where there is none."""
    told = set()
    for seed in range(12):
        ended = scenario_named("deposit_rejected", seed).expected.deposits.values()
        told |= {
            (effect.effect, effect.payload["reason"])
            for deposit in ended
            for effect in deposit.effects
            if effect.effect == "fail_order"
        }
    assert {("fail_order", "สลิปไม่ชัด 😿 é"), ("fail_order", None)} <= told


def test_a_deposit_without_correlation_waits_for_ever(world: World) -> None:
    """It has no row, its events are parked, and its user has nothing of it."""
    for order in orders_of(world, "deposit_never_correlated"):
        assert order.id not in world.expected_complete.deposits
        assert order.id in world.expected_complete.absent_objects
        for event in events_of(world, order.id):
            assert world.expected_complete.parked[event.id] == "correlation"
    never = {row.pg_deposit_id for row in world.correlations if row.written_at is None}
    assert never == {order.id for order in orders_of(world, "deposit_never_correlated")}


def test_correlations_come_before_and_after_the_first_event(world: World) -> None:
    """Mostly a moment before; often enough after it, by hours at times."""
    leads = [
        world.objects[row.pg_deposit_id].created_at - row.written_at
        for row in world.correlations
        if row.written_at is not None
    ]
    assert sum(lead > timedelta(0) for lead in leads) > len(leads) / 2
    assert sum(lead < timedelta(0) for lead in leads) > len(leads) / 10
    assert min(leads) < -timedelta(minutes=10)


def test_a_lapsed_reservation_rises_without_an_event(world: World) -> None:
    """Remaining falls, and is higher again in the next event; the API showed it in between, at a version of its own."""
    for order in orders_of(world, "withdrawal_lapsed_reservation"):
        created, matched, again = snapshots_of(world, order.id)[:3]
        assert matched["remaining_minor"] < created["remaining_minor"]
        assert (again["version"], again["remaining_minor"]) == (matched["version"] + 2, matched["remaining_minor"])
        silent = [state for state in order.states if state.version == matched["version"] + 1]
        assert [json.loads(state.snapshot)["remaining_minor"] for state in silent] == [created["remaining_minor"]]
        assert order.as_of(silent[0].at) == silent[0]


def test_dust_is_absorbed(world: World) -> None:
    """Chunks add up to less than filled, which is the whole order."""
    for order in orders_of(world, "withdrawal_dust"):
        last = snapshots_of(world, order.id)[-1]
        assert (last["status"], last["dust_absorbed"], last["remaining_minor"]) == ("settled", True, 0)
        assert sum(fill["amount_minor"] for fill in last["fills"]) < last["filled_minor"] == last["amount_total_minor"]
        assert last["fee_recognized_minor"] == last["fee_total_minor"]
        assert world.expected_complete.withdrawals[order.id].closed is True


def test_recalls_come_right_after_their_fill(world: World) -> None:
    """So soon that retries put the reversal first."""
    for scenario in ("recall_at_once", "recall_before_settlement"):
        for order in orders_of(world, scenario):
            by_type = {event.type: event.created_at for event in reversed(events_of(world, order.id))}
            recalled = next(e for e in events_of(world, order.id) if e.type == "withdrawal.fill_reversed")
            leg = body_of(recalled)["data"]["fill"]["leg_ref"]
            fill = next(
                event
                for event in events_of(world, order.id)
                if event.type == "withdrawal.filled" and body_of(event)["data"]["fill"]["leg_ref"] == leg
            )
            assert by_type["withdrawal.fill_reversed"] - fill.created_at < timedelta(seconds=1)
            assert (recalled.status == "settled") == (scenario == "recall_at_once")


def test_a_recall_before_settlement_leaves_closing_to_the_order_of_arrival(world: World) -> None:
    """The effect leaves for certain; whether the row is closed depends on what comes last."""
    for order in orders_of(world, "recall_before_settlement"):
        ended = world.expected_complete.withdrawals[order.id]
        assert (ended.status, ended.closed) == ("settled", None)
        assert [effect.certain for effect in ended.effects if effect.effect == "close_withdrawal"] == [True]


def test_a_recall_of_two_chunks_compensates_each(world: World) -> None:
    """One effect a leg, certain in every order of arrival."""
    for order in orders_of(world, "recall_twice"):
        ended = world.expected_complete.withdrawals[order.id]
        assert sum(fill.reversed for fill in ended.fills) == len(ended.tombstones) == 2
        assert [e.certain for e in ended.effects if e.effect == "compensate_reversed_fill"] == [True, True]


def test_references_stand_in_different_places(world: World) -> None:
    """merchant_reference, metadata.ticket, metadata.payout_id, or nowhere: then the ticket is null."""
    found = set()
    for order in world.objects.values():
        if order.kind != "withdrawal_order":
            continue
        o = json.loads(order.states[-1].snapshot)
        metadata = o["metadata"]
        reference = o.get("merchant_reference") or metadata.get("ticket") or metadata.get("payout_id")
        assert world.expected_complete.withdrawals[order.id].our_ref == reference
        found.add(("merchant_reference" in o, *sorted(metadata.keys() & {"ticket", "payout_id"})))
    assert found == {(True, "ticket"), (False, "ticket"), (False, "payout_id"), (False,)}


def test_a_withdrawal_that_runs_ends_with_a_sparse_event(world: World) -> None:
    """What a sparse event lacks may be left by any earlier one, or by none."""
    for order in orders_of(world, "withdrawal_still_running"):
        ended = world.expected_complete.withdrawals[order.id]
        assert (ended.status, ended.remaining_minor, ended.closed) == ("partially_filled", 0, False)
        assert None in ended.fee_recognized_minor
        assert ended.refunded_minor == {None}


def test_strangers_and_test_traffic(world: World) -> None:
    """Unknown kinds are known to the inbox alone, test traffic to nobody."""
    kinds = {event.object_kind for event in world.events}
    assert {"payment_link", "settlement_report"} <= kinds
    end = world.expected_complete
    for event in world.events:
        if event.object_kind in ("payment_link", "settlement_report"):
            assert event.id in end.processed
            assert event.object_id in end.absent_objects
        if not event.livemode:
            assert event.id in end.absent
            assert event.object_id in end.absent_objects
            assert event.object_id not in world.objects
    assert {event.object_kind for event in world.events if not event.livemode} == {
        *("deposit_order", "withdrawal_order", "balance_transaction")
    }
    assert any(event.type == "balance.adjusted" for event in world.events)


def test_the_api_shows_each_object_as_of_any_time(world: World) -> None:
    """Nothing before its first moment, the version of the newest event from its moment on."""
    for order in world.objects.values():
        assert order.as_of(order.created_at - timedelta(milliseconds=1)) is None
        for event in events_of(world, order.id):
            state = order.as_of(event.created_at)
            assert state is not None
            assert state.version == event.version
    created = [order.created_at for order in world.objects.values()]
    assert created == sorted(created)
