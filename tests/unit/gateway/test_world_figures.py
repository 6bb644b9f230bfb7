"""The figures of the gateway's own pages, which must come out to the satang."""

from datetime import timedelta

from tallyhook.gateway.world.named import scenario_named
from tests.unit.gateway.reading import body_of, events_of, orders_of, snapshots_of

MATCHED_MEMBERS = {
    "id",
    "object",
    "version",
    "status",
    "filled_minor",
    "remaining_minor",
    "reserved_minor",
    "matched_legs",
}


def test_three_chunks_make_the_eight_events_of_the_guide() -> None:
    """1,000 baht in 300 + 400 + 300: remaining falls when a payer is reserved, settled comes with the third chunk."""
    world = scenario_named("withdrawal_three_chunks", seed=1)
    (order,) = world.objects.values()
    told = [
        (event.type, event.version, snapshot["filled_minor"], snapshot["remaining_minor"], event.status)
        for event, snapshot in zip(events_of(world, order.id), snapshots_of(world, order.id), strict=True)
    ]
    assert told == [
        ("withdrawal.created", 1, 0, 100_000, "open"),
        ("withdrawal.matched", 2, 0, 70_000, "open"),
        ("withdrawal.filled", 3, 30_000, 70_000, "partially_filled"),
        ("withdrawal.matched", 4, 30_000, 30_000, "partially_filled"),
        ("withdrawal.filled", 5, 70_000, 30_000, "partially_filled"),
        ("withdrawal.matched", 6, 70_000, 0, "partially_filled"),
        ("withdrawal.filled", 7, 100_000, 0, "settled"),
        ("withdrawal.settled", 8, 100_000, 0, "settled"),
    ]


def test_three_chunks_keep_the_distances_in_time() -> None:
    """From the first reservation on they are the guide's own, to the millisecond where no movement comes between."""
    world = scenario_named("withdrawal_three_chunks", seed=1)
    (order,) = world.objects.values()
    at = [event.created_at for event in events_of(world, order.id)]
    since = [moment - at[1] for moment in at]
    seconds = (0.0, 321.867, 399.102, 1_126.623, 1_592.653, 2_293.978)
    assert since[1:7] == [timedelta(seconds=value) for value in seconds]
    assert timedelta(0) < at[7] - at[6] <= timedelta(milliseconds=9)


def test_the_chunks_fees_are_the_running_differences() -> None:
    """802, 1,070 and 803 of 2,675: two chunks of 300 differ by a satang."""
    world = scenario_named("withdrawal_three_chunks", seed=2)
    (order,) = world.objects.values()
    fills = [
        body_of(event)["data"]["fill"] for event in events_of(world, order.id) if event.type == "withdrawal.filled"
    ]
    assert [(fill["sequence"], fill["amount_minor"], fill["fee_recognized_minor"]) for fill in fills] == [
        (1, 30_000, 802),
        (2, 40_000, 1_070),
        (3, 30_000, 803),
    ]
    assert [snapshot.get("fee_recognized_minor") for snapshot in snapshots_of(world, order.id)] == [
        *(0, None, 802, None, 1_872, None, 2_675, 2_675)
    ]


def test_the_summary_lists_the_chunks() -> None:
    """Version 8 carries refunded 0, no dust, and each receipt's state; chunks refer to movements of the wallet."""
    world = scenario_named("withdrawal_three_chunks", seed=3)
    (order,) = world.objects.values()
    *_, last = snapshots_of(world, order.id)
    assert (last["refunded_minor"], last["dust_absorbed"], last["settled_splits"]) == (0, False, 3)
    assert [fill["receipt_state"] for fill in last["fills"]] == ["confirmed", "awaiting_confirm", "awaiting_confirm"]
    movements = {transaction.id: transaction for transaction in world.transactions}
    fills = [body_of(event)["data"].get("fill") for event in events_of(world, order.id)]
    paid = [movements[fill["balance_transaction_id"]] for fill in fills if fill is not None]
    assert [(movement.type, movement.amount_minor) for movement in paid] == [
        *(("withdrawal_fill", 30_000), ("withdrawal_fill", 40_000), ("withdrawal_fill", 30_000))
    ]


def test_matched_events_are_sparse() -> None:
    """They carry what the guide shows and nothing of the payer's side; the API shows the whole order all the same."""
    world = scenario_named("withdrawal_day", seed=4)
    (order,) = orders_of(world, "withdrawal_three_chunks")
    matched = [event for event in events_of(world, order.id) if event.type == "withdrawal.matched"]
    assert [set(body_of(event)["data"]["object"]) for event in matched] == [MATCHED_MEMBERS] * 3
    assert [body_of(event)["data"]["object"]["reserved_minor"] for event in matched] == [30_000, 40_000, 30_000]
    assert all("fill" not in body_of(event)["data"] for event in matched)
    assert all(b'"amount_total_minor":100000' in state.snapshot for state in order.states)


def test_half_filled_expiry_gives_back_principal_and_fee_apart() -> None:
    """100,000 with 70,000 paid out: 30,000 and 803 are two movements, 71,872 stay debited; the version is 9."""
    world = scenario_named("withdrawal_half_filled_expiry", seed=5)
    (order,) = world.objects.values()
    *_, last = snapshots_of(world, order.id)
    assert (last["version"], last["status"], last["filled_minor"], last["remaining_minor"]) == (
        *(9, "expired", 70_000, 30_000),
    )
    assert (last["refunded_minor"], last["fee_recognized_minor"], last["total_locked_minor"]) == (
        30_000,
        1_872,
        102_675,
    )
    back = [movement for movement in world.transactions if movement.bucket_to == "available" and movement.source_id]
    assert [(movement.type, movement.amount_minor) for movement in back] == [
        ("withdrawal_refund", 30_000),
        ("withdrawal_fee_refund", 803),
    ]
    assert {event.type for event in world.events if event.object_id in {movement.id for movement in back}} == {
        "balance.credited"
    }
    assert last["released_balance_transaction_id"] == back[0].id
    (refund,) = [
        effect for effect in world.expected.withdrawals[order.id].effects if effect.effect == "refund_unfilled"
    ]
    assert refund.payload == {
        "withdrawal_id": order.id,
        "ticket": last["merchant_reference"],
        "refunded_minor": 30_000,
        "fee_unused_minor": 803,
        "release_minor": 30_803,
        "debited_minor": 71_872,
    }


def test_the_withdrawal_day_has_a_gap_until_it_is_filled() -> None:
    """The second chunk, 400 baht, is never delivered: the totals come right without it, the timeline does not."""
    world = scenario_named("withdrawal_day", seed=6)
    assert world.scenarios == {
        "withdrawal_three_chunks": 1,
        "recall_with_replacement": 1,
        "withdrawal_half_filled_expiry": 1,
    }
    (withheld,) = [event for event in world.events if event.never_delivered]
    assert (withheld.type, withheld.version) == ("withdrawal.filled", 5)
    assert world.events[0].sequence < withheld.sequence < world.events[-1].sequence
    before, after = (end.withdrawals[withheld.object_id] for end in (world.expected, world.expected_complete))
    assert (before.filled_minor, before.closed) == (after.filled_minor, after.closed) == (100_000, True)
    assert [fill.amount_minor for fill in before.fills] == [30_000, 30_000]
    assert [fill.amount_minor for fill in after.fills] == [30_000, 40_000, 30_000]
    assert withheld.id in world.expected.absent
    assert withheld.id in world.expected_complete.processed


def test_a_recall_leaves_the_order_settled_and_names_its_replacement() -> None:
    """The old order is not rewritten, but is open again on the merchant's side; the new one pays the same amount."""
    world = scenario_named("recall_with_replacement", seed=7)
    old, new = world.objects.values()
    event = next(event for event in events_of(world, old.id) if event.type == "withdrawal.fill_reversed")
    data = body_of(event)["data"]
    assert (event.version, event.status, data["replacement_withdrawal_id"]) == (9, "settled", new.id)
    assert data["object"]["filled_minor"] == 100_000
    assert data["reversal"]["reverses_balance_transaction_id"] == data["fill"]["balance_transaction_id"]
    assert snapshots_of(world, new.id)[-1]["amount_total_minor"] == data["fill"]["amount_minor"]
    ended = world.expected.withdrawals
    assert (ended[old.id].closed, ended[old.id].replacement_withdrawal_id) == (False, new.id)
    assert (ended[new.id].closed, ended[new.id].status) == (True, "settled")
    certain = {effect.effect: effect.certain for effect in ended[old.id].effects}
    assert (certain["close_withdrawal"], certain["compensate_reversed_fill"]) == (False, True)
