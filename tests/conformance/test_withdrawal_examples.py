"""The gateway's worked examples for withdrawals, with their very numbers.

Source: the gateway's page on partial fills (the eight events of one order, the order of arrival, expired half filled)
and its page on event order, cases C and D.
"""

from datetime import UTC, datetime
from itertools import permutations

import pytest

from schemas.effects import CompensateReversedFill, RefundUnfilled
from sinks.domain import withdrawals
from sinks.domain.chunk_fee import chunk_fee_minor
from sinks.domain.decision import EffectDraft, Refusal
from sinks.domain.withdrawal_state import NotYet
from tests.conformance.worked_withdrawal import (
    CLOSE,
    EIGHT,
    FILLS,
    KEPT,
    ORDER_ID,
    PARTLY,
    SETTLED,
    TICKET,
    Order,
    delivery,
    fill,
    opened,
    progress,
    reserved,
    totals,
)
from tests.unit.domain.withdrawal_samples import Json, reading


def test_the_eight_events_of_one_order() -> None:
    """1,000 baht in 300 + 400 + 300: each event shows what it says, and the order is closed once, by the last chunk."""
    order = Order()
    decisions = [order.deliver(raw) for raw in EIGHT]
    assert [decision.effects for decision in decisions] == [
        (opened(1),),
        (opened(2),),
        (progress(3, 30_000),),
        (progress(4, 30_000),),
        (progress(5, 70_000),),
        (progress(6, 70_000),),
        (CLOSE,),
        (),
    ]
    assert [decision.verdict for decision in decisions] == ["advanced"] * 8
    assert [decision.reason for decision in decisions] == [None] * 7 + ["already_closed"]
    assert [decision.fee_differs for decision in decisions] == [False] * 8
    assert (order.row, order.fills) == (SETTLED, KEPT)


def test_the_remainder_falls_when_a_payer_is_reserved() -> None:
    """Not when the money lands; and it rises again in silence when a reservation lapses."""
    order = Order()
    remainders = []
    for raw in EIGHT[:7]:
        order.deliver(raw)
        remainders.append(order.row.remaining_minor)
    assert remainders == [100_000, 70_000, 70_000, 30_000, 30_000, 0, 0]
    lapsed = Order()
    for raw in EIGHT[:6]:
        lapsed.deliver(raw)
    again = delivery("matched", 7, PARTLY, "2026-08-21T03:50:00Z", {"remaining_minor": 30_000})
    decision = lapsed.deliver(again)
    assert (lapsed.row.remaining_minor, decision.effects) == (30_000, (progress(7, 70_000),))


def test_matched_events_alone_close_nothing() -> None:
    """Three reservations leave no remainder, and not one satang was paid."""
    order = Order()
    order.deliver(EIGHT[0])
    for version, remaining in ((2, 70_000), (4, 30_000), (6, 0)):
        order.deliver(reserved(version, "open", "2026-08-21T03:14:26Z", 0, remaining, 1))
    assert (order.row.filled_minor, order.row.remaining_minor, order.row.closed) == (0, 0, False)
    assert {effect.name for effect in order.effects} == {"update_local_status"}


def test_the_chunk_fees_are_kept_as_sent_and_add_up() -> None:
    """802 + 1,070 + 803 is 2,675; each chunk priced on its own would leave one satang over."""
    order = Order()
    for raw in EIGHT:
        order.deliver(raw)
    assert [kept.fee_recognized_minor for kept in order.fills] == [802, 1_070, 803]
    assert sum(kept.fee_recognized_minor or 0 for kept in order.fills) == order.row.fee_total_minor == 2_675
    assert [
        chunk_fee_minor(2_675, 100_000, after, chunk)
        for after, chunk in ((30_000, 30_000), (70_000, 40_000), (100_000, 30_000))
    ] == [802, 1_070, 803]
    naive = delivery(
        "filled", 9, "settled", "2026-08-21T03:52:40Z", totals(100_000, 0, 2_674, 3),
        fill=fill("leg_4", 3, 30_000, 802, "03:52:40.019", "btxn_4"),
    )  # fmt: skip
    assert order.deliver(naive).fee_differs is True


def test_case_c_the_fills_land_out_of_order() -> None:
    """v9, v11 and v7 arrive: the remainder stays at the v11 value, and all three fills are kept."""
    first, second, third = (
        delivery("filled", 7, PARTLY, "2026-07-01T11:00:00Z", totals(30_000, 70_000, 802, 1), fill=FILLS[0]),
        delivery("filled", 9, PARTLY, "2026-07-01T11:10:00Z", totals(70_000, 30_000, 1_872, 2), fill=FILLS[1]),
        delivery("filled", 11, "settled", "2026-07-01T11:20:00Z", totals(100_000, 0, 2_675, 3), fill=FILLS[2]),
    )
    order = Order()
    decisions = [order.deliver(raw) for raw in (second, third, first)]
    assert [decision.verdict for decision in decisions] == ["advanced", "advanced", "late"]
    assert (decisions[2].reason, decisions[2].effects) == ("late_fact", ())
    assert (order.row.pg_version, order.row.remaining_minor, order.row.filled_minor) == (11, 0, 100_000)
    assert order.fills == KEPT
    assert [effect.name for effect in order.effects] == ["show_progress", "close_withdrawal"]


def test_case_d_the_second_fill_before_the_first() -> None:
    """v5, v3, v8 arrive: the totals come from v8, both fills are kept, and the order is closed once."""
    order = Order()
    order.deliver(EIGHT[4])
    assert (order.row.pg_version, order.row.filled_minor) == (5, 70_000)
    late = order.deliver(EIGHT[2])
    assert (late.verdict, late.reason, late.effects) == ("late", "late_fact", ())
    assert (order.row.pg_version, order.row.filled_minor) == (5, 70_000)
    order.deliver(EIGHT[7])
    assert (order.row, order.fills) == (SETTLED, KEPT[:2])
    close = EffectDraft(CLOSE.name, CLOSE.dedupe_key, CLOSE.payload, 8)
    assert order.effects == [progress(5, 70_000), close]


EXPIRED = delivery(
    "expired",
    9,
    "expired",
    "2026-08-21T09:02:14.338Z",
    {**totals(70_000, 30_000, 1_872, 2), "refunded_minor": 30_000, "released_balance_transaction_id": "btxn_9"},
)
REFUND = EffectDraft(
    "refund_unfilled",
    f"withdrawal:{ORDER_ID}:refund_unfilled",
    RefundUnfilled(
        withdrawal_id=ORDER_ID,
        ticket=TICKET,
        refunded_minor=30_000,
        fee_unused_minor=803,
        release_minor=30_803,
        debited_minor=71_872,
    ),
    9,
)


def test_case_e_expired_half_filled() -> None:
    """Of 102,675 that were locked, 30,803 go back to the user and 71,872 stay: expired does not mean unpaid."""
    order = Order()
    for raw in EIGHT[:6]:
        order.deliver(raw)
    decision = order.deliver(EXPIRED)
    assert decision.effects == (REFUND,)
    assert order.row.total_locked_minor == 30_803 + 71_872
    assert (order.row.status, order.row.filled_minor, order.row.closed) == ("expired", 70_000, False)
    assert order.fills == KEPT[:2]


def test_expired_before_anything_else() -> None:
    """The snapshot is whole, so the first event of an order may be its last."""
    order = Order()
    assert order.deliver(EXPIRED).effects == (REFUND,)
    for raw in EIGHT[:6]:
        assert order.deliver(raw).effects == ()
    assert order.fills == KEPT[:2]


REVERSAL: Json = {
    "reason_code": "SLIP_INVALIDATED_AFTER_SETTLEMENT",
    "reverses_balance_transaction_id": "btxn_2",
    "balance_transaction_id": "btxn_r2",
}
REVERSED = delivery(
    "fill_reversed", 9, "settled", "2026-08-22T05:00:00.25Z", totals(100_000, 0, 2_675, 3),
    fill=FILLS[1], reversal=REVERSAL, replacement_withdrawal_id="wdr_Q",
)  # fmt: skip
COMPENSATION = EffectDraft(
    "compensate_reversed_fill",
    "withdrawal-fill:leg_2:reverse:compensate_reversed_fill",
    CompensateReversedFill(
        withdrawal_id=ORDER_ID,
        leg_ref="leg_2",
        amount_minor=40_000,
        reason_code="SLIP_INVALIDATED_AFTER_SETTLEMENT",
        reverses_balance_transaction_id="btxn_2",
        reversal_balance_transaction_id="btxn_r2",
        replacement_withdrawal_id="wdr_Q",
    ),
    9,
)
REVERSED_AT = datetime(2026, 8, 22, 5, 0, 0, 250_000, tzinfo=UTC)


def test_case_f_the_reversal_before_its_fill() -> None:
    """The fill is kept with the mark, and compensated once."""
    order = Order()
    first = order.deliver(REVERSED)
    assert first.effects == (COMPENSATION,)
    second = order.deliver(EIGHT[4])
    assert (second.verdict, second.reason, second.effects) == ("late", "late_fact", ())
    assert [(kept.leg_ref, kept.reversed_at) for kept in order.fills] == [("leg_2", REVERSED_AT)]
    assert order.effects == [COMPENSATION]


def test_a_chunk_is_taken_back_after_the_settlement() -> None:
    """The order is open again here and stays so, with its replacement; its status is never rewritten backwards."""
    order = Order()
    for raw in (*EIGHT, REVERSED):
        order.deliver(raw)
    assert order.effects[-2:] == [CLOSE, COMPENSATION]
    assert (order.row.closed, order.row.status, order.row.replacement_withdrawal_id) == (False, "settled", "wdr_Q")
    summary = delivery("settled", 10, "settled", "2026-08-22T06:00:00Z", totals(100_000, 0, 2_675, 3))
    decision = order.deliver(summary)
    assert (decision.verdict, decision.reason, decision.effects) == ("advanced", "reversed_after_settlement", ())
    assert order.row.closed is False


@pytest.mark.parametrize("last", ["fill", "settled", "reversed"])
def test_a_chunk_that_is_lost_in_any_order(last: str) -> None:
    """Fill v7, summary v8 and reversal v9 of a settled order, every way they can arrive with `last` at the end."""
    fill_of_two = delivery(
        "filled", 7, "settled", "2026-08-21T03:52:40.096Z", totals(100_000, 0, 2_675, 3), fill=FILLS[1]
    )
    named = {"fill": fill_of_two, "settled": EIGHT[7], "reversed": REVERSED}
    for arrivals in permutations(named):
        if arrivals[-1] != last:
            continue
        order = Order()
        for name in arrivals:
            order.deliver(named[name])
        assert [effect for effect in order.effects if effect.name == "compensate_reversed_fill"] == [COMPENSATION]
        closes = sum(effect.name == "close_withdrawal" for effect in order.effects)
        assert closes == (0 if arrivals[0] == "reversed" else 1)
        assert (order.row.pg_version, order.row.closed, order.row.replacement_withdrawal_id) == (9, False, "wdr_Q")
        assert [kept.reversed_at for kept in order.fills] == [REVERSED_AT]


def test_a_sparse_event_waits_for_the_one_that_makes_the_row() -> None:
    """A reservation overtakes the creation: it waits, then it is applied after it."""
    order = Order()
    assert isinstance(order.judge(reading(EIGHT[1])), NotYet)
    order.arrive(reading(EIGHT[1]))
    order.arrive(reading(EIGHT[5]))
    assert order.effects == []
    order.arrive(reading(EIGHT[2]))
    assert order.effects == [progress(3, 30_000), progress(6, 70_000)]
    assert (order.row.pg_version, order.row.remaining_minor, order.row.fee_recognized_minor) == (6, 0, 802)


def test_dust_is_nothing_special() -> None:
    """The gateway absorbs what nobody would take: all is filled, though the chunks add up to less."""
    order = Order()
    for raw in EIGHT[:6]:
        order.deliver(raw)
    dust = {**totals(100_000, 0, 2_675, 2), "dust_absorbed": True}
    decision = order.deliver(delivery("settled", 7, "settled", "2026-08-21T04:00:00Z", dust))
    assert decision.effects == (CLOSE,)
    assert (order.row.filled_minor, sum(kept.amount_minor for kept in order.fills)) == (100_000, 70_000)


def test_a_reversal_that_points_elsewhere_is_set_aside() -> None:
    """Its transaction must be that of its fill, and its reason one of three."""
    for broken in ({"reverses_balance_transaction_id": "btxn_1"}, {"reason_code": "CUSTOMER_REQUEST"}):
        raw = delivery(
            "fill_reversed", 9, "settled", "2026-08-22T05:00:00Z", totals(100_000, 0, 2_675, 3),
            fill=FILLS[1], reversal={**REVERSAL, **broken},
        )  # fmt: skip
        event = withdrawals.parse(raw)
        assert not isinstance(event, Refusal)
        refusal = withdrawals.read(event)
        assert isinstance(refusal, Refusal)
        assert refusal.reason == "reversal_shape"
