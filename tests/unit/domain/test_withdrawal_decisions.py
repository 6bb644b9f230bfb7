"""Decisions on withdrawals: what each status means, and what happens once in an order's life."""

from dataclasses import replace

import pytest

from schemas.effects import (
    CloseWithdrawal,
    EffectName,
    RefundUnfilled,
    ReleaseUserLock,
    ShowProgress,
    UpdateLocalStatus,
    WithdrawalEffect,
)
from sinks.domain.decision import EffectDraft, Refusal
from sinks.domain.withdrawal_state import Withdrawal
from tests.unit.domain.withdrawal_samples import (
    ROW,
    TICKET,
    TOTALS,
    WITHDRAWAL_ID,
    Json,
    Ledger,
    at,
    filled,
    sparse,
    whole,
)


def once(name: EffectName, payload: WithdrawalEffect, version: int = 6) -> EffectDraft:
    """An effect that is keyed by its withdrawal."""
    return EffectDraft(name, f"withdrawal:{WITHDRAWAL_ID}:{name}", payload, version)


def shown(name: EffectName, payload: WithdrawalEffect, version: int = 6) -> EffectDraft:
    """An effect that is keyed by its event."""
    return EffectDraft(name, f"evt_{version}:{name}", payload, version)


@pytest.mark.parametrize(
    "status", ["open", "pending_approval", "a_status_of_tomorrow", "Settled", "EXPIRED", "reversed"]
)
@pytest.mark.parametrize("row", [None, ROW])
def test_any_other_status_is_passed_on(status: str, row: Withdrawal | None) -> None:
    """Known or not, for the first event and for a later one."""
    ledger = Ledger() if row is None else at(row)
    decision = ledger.take(whole(6, status))
    assert decision.effects == (shown("update_local_status", UpdateLocalStatus(TICKET, status)),)
    assert (decision.verdict, decision.reason) == ("advanced", None)


def test_progress_is_told_from_the_row() -> None:
    """A sparse event names neither amount nor ticket: both are the row's."""
    ledger = at(ROW)
    decision = ledger.take(sparse(6, "partially_filled", remaining_minor=30_000))
    assert decision.effects == (shown("show_progress", ShowProgress(TICKET, 30_000, 100_000)),)
    decision = ledger.take(sparse(7, "partially_filled", filled_minor=70_000))
    assert decision.effects == (shown("show_progress", ShowProgress(TICKET, 70_000, 100_000), 7),)


def test_an_unknown_ticket_is_null() -> None:
    """In every payload, until an event brings it."""
    row = replace(ROW, our_ref=None)
    for status, remaining in (("partially_filled", 1), ("open", 1), ("settled", 0), ("expired", 1), ("rejected", 1)):
        decision = at(row).take(sparse(6, status, remaining_minor=remaining))
        assert [getattr(effect.payload, "ticket", "none") for effect in decision.effects] == [None]
        decision = at(row).take(sparse(6, status, remaining_minor=remaining, metadata={"ticket": "T"}))
        assert [getattr(effect.payload, "ticket", "none") for effect in decision.effects] == ["T"]


def test_settled_without_a_remainder_closes_once() -> None:
    """The summary that follows says nothing new; the remainder may be the row's."""
    ledger = at(replace(ROW, remaining_minor=0))
    first = ledger.take(sparse(6, "settled", filled_minor=100_000))
    assert first.effects == (once("close_withdrawal", CloseWithdrawal(WITHDRAWAL_ID, TICKET)),)
    assert (first.reason, ledger.row.closed, ledger.row.close_enqueued) == (None, True, True)
    again = ledger.take(whole(7, "settled", remaining_minor=0))
    assert (again.verdict, again.reason, again.effects) == ("advanced", "already_closed", ())
    assert (ledger.row.closed, ledger.row.pg_version) == (True, 7)


@pytest.mark.parametrize("remaining_minor", [1, 70_000, -1])
def test_settled_with_a_remainder_is_not_closed(remaining_minor: int) -> None:
    """Not even by what is left to the good; a later event may close it."""
    ledger = at(ROW)
    decision = ledger.take(whole(6, "settled", remaining_minor=remaining_minor))
    assert (decision.verdict, decision.reason, decision.effects) == ("advanced", "not_all_filled", ())
    assert (ledger.row.status, ledger.row.closed, ledger.row.close_enqueued) == ("settled", False, False)
    assert [effect.name for effect in ledger.take(whole(7, "settled", remaining_minor=0)).effects] == [
        "close_withdrawal"
    ]


def test_a_remainder_of_zero_alone_closes_nothing() -> None:
    """All may be reserved by a payer, and the money still on its way."""
    decision = at(ROW).take(sparse(6, "partially_filled", remaining_minor=0))
    assert ([effect.name for effect in decision.effects], decision.state.row and decision.state.row.closed) == (
        ["show_progress"],
        False,
    )


def test_closed_again_after_a_reopening_is_not_told_again() -> None:
    """The marker of the effect outlives that of the row."""
    ledger = at(replace(ROW, remaining_minor=0, close_enqueued=True))
    decision = ledger.take(sparse(6, "settled"))
    assert (decision.reason, decision.effects) == ("already_closed", ())
    assert (ledger.row.closed, ledger.row.close_enqueued) == (True, True)


def test_a_row_that_was_taken_over_closed_is_not_closed_again() -> None:
    """Another handler closed it, so that this one never told."""
    ledger = at(replace(ROW, remaining_minor=0, closed=True))
    decision = ledger.take(sparse(6, "settled"))
    assert (decision.reason, decision.effects, ledger.row.close_enqueued) == ("already_closed", (), False)


def test_never_closed_after_a_settled_reversal() -> None:
    """A tombstone whose own snapshot was settled keeps the order open, whatever comes."""
    ledger = at(replace(ROW, remaining_minor=0), settled_tombstone=True)
    decision = ledger.take(sparse(6, "settled"))
    assert (decision.verdict, decision.reason, decision.effects) == ("advanced", "reversed_after_settlement", ())
    assert (ledger.row.closed, ledger.row.close_enqueued) == (False, False)
    unfilled = ledger.take(sparse(7, "settled", remaining_minor=1))
    assert unfilled.reason == "not_all_filled"


@pytest.mark.parametrize("status", ["expired", "canceled"])
def test_an_end_before_all_was_paid_refunds_the_rest_once(status: str) -> None:
    """The example: of 102,675 locked, 30,803 go back and 71,872 stay."""
    ledger = at(replace(ROW, filled_minor=70_000, fee_recognized_minor=1_872))
    decision = ledger.take(sparse(6, status, refunded_minor=30_000, remaining_minor=30_000))
    refund = RefundUnfilled(WITHDRAWAL_ID, TICKET, 30_000, 803, 30_803, 71_872)
    assert decision.effects == (once("refund_unfilled", refund),)
    assert (decision.reason, ledger.row.refund_enqueued) == (None, True)
    for version, other in ((7, "expired"), (8, "canceled")):
        again = ledger.take(sparse(version, other, refunded_minor=5))
        assert (again.verdict, again.reason, again.effects) == ("advanced", "already_refunded", ())
    assert (ledger.row.refund_enqueued, ledger.row.refunded_minor) == (True, 5)


@pytest.mark.parametrize(
    ("unknown", "refund"),
    [
        ({"refunded_minor": None}, RefundUnfilled(WITHDRAWAL_ID, TICKET, None, 1_873, None, 30_802)),
        ({"fee_total_minor": None}, RefundUnfilled(WITHDRAWAL_ID, TICKET, 9, None, None, 30_802)),
        ({"fee_recognized_minor": None}, RefundUnfilled(WITHDRAWAL_ID, TICKET, 9, None, None, None)),
        ({}, RefundUnfilled(WITHDRAWAL_ID, TICKET, 9, 1_873, 1_882, 30_802)),
    ],
)
def test_what_is_not_known_is_null_and_not_zero(unknown: Json, refund: RefundUnfilled) -> None:
    """A sum without one of its parts would give back too little or too much."""
    row = replace(ROW, refunded_minor=9)
    decision = at(replace(row, **unknown)).take(sparse(6, "expired"))  # type: ignore[arg-type]
    assert [effect.payload for effect in decision.effects] == [refund]


GREATEST, LEAST = (1 << 63) - 1, -(1 << 63)


@pytest.mark.parametrize(
    ("amounts", "name"),
    [
        ({"fee_total_minor": GREATEST, "fee_recognized_minor": -1, "refunded_minor": -5}, "fee_unused_minor"),
        ({"fee_total_minor": LEAST, "fee_recognized_minor": 1, "refunded_minor": 5}, "fee_unused_minor"),
        ({"fee_total_minor": 1, "fee_recognized_minor": 0, "refunded_minor": GREATEST}, "release_minor"),
        ({"fee_total_minor": 0, "fee_recognized_minor": 1, "refunded_minor": LEAST}, "release_minor"),
        ({"filled_minor": GREATEST, "fee_recognized_minor": 1}, "debited_minor"),
        ({"filled_minor": LEAST, "fee_recognized_minor": -1}, "debited_minor"),
    ],
)
def test_amounts_that_add_up_to_no_bigint_are_refused(amounts: Json, name: str) -> None:
    """Nothing of the event is applied; where nothing is to be refunded, nothing is added up."""
    row = replace(ROW, **amounts)  # type: ignore[arg-type]
    refusal = at(row).refusal(filled(6, "expired", **dict.fromkeys(TOTALS)))
    assert (refusal.reason, name in refusal.detail) == ("body_shape", True)
    assert at(replace(row, refund_enqueued=True)).take(sparse(6, "expired")).reason == "already_refunded"
    assert at(row).take(sparse(5, "expired")).reason == "older_version"
    assert at(row).take(sparse(6, "rejected")).reason is None


@pytest.mark.parametrize(
    ("amounts", "refund"),
    [
        ((GREATEST, 0, 0, 0), RefundUnfilled(WITHDRAWAL_ID, TICKET, 0, GREATEST, GREATEST, 0)),
        ((0, 0, GREATEST, 0), RefundUnfilled(WITHDRAWAL_ID, TICKET, GREATEST, 0, GREATEST, 0)),
        ((0, 0, LEAST, LEAST), RefundUnfilled(WITHDRAWAL_ID, TICKET, LEAST, 0, LEAST, LEAST)),
        ((LEAST, 0, 0, GREATEST), RefundUnfilled(WITHDRAWAL_ID, TICKET, 0, LEAST, LEAST, GREATEST)),
    ],
)
def test_the_greatest_amounts_that_fit(amounts: tuple[int, int, int, int], refund: RefundUnfilled) -> None:
    """The bounds themselves are bigints."""
    fee_total, recognized, refunded, filled_minor = amounts
    row = replace(
        ROW,
        fee_total_minor=fee_total,
        fee_recognized_minor=recognized,
        refunded_minor=refunded,
        filled_minor=filled_minor,
    )
    assert [effect.payload for effect in at(row).take(sparse(6, "canceled")).effects] == [refund]


def test_rejected_releases_the_lock_once() -> None:
    """Whatever version says so again."""
    ledger = at(ROW)
    decision = ledger.take(sparse(6, "rejected"))
    assert decision.effects == (once("release_user_lock", ReleaseUserLock(WITHDRAWAL_ID, TICKET)),)
    assert (decision.reason, ledger.row.lock_released) == (None, True)
    again = ledger.take(sparse(7, "rejected"))
    assert (again.verdict, again.reason, again.effects) == ("advanced", "already_released", ())
    assert (ledger.row.lock_released, ledger.row.pg_version) == (True, 7)


def test_each_one_shot_has_its_own_marker() -> None:
    """An order that goes through all the ends emits each of them, in any order of statuses."""
    ledger = at(ROW)
    for version, status in enumerate(("expired", "rejected", "settled", "canceled", "rejected", "settled"), start=6):
        ledger.take(sparse(version, status, remaining_minor=0))
    assert [effect.name for effect in ledger.effects] == ["refund_unfilled", "release_user_lock", "close_withdrawal"]
    assert (ledger.row.closed, ledger.row.refund_enqueued, ledger.row.lock_released) == (True, True, True)


@pytest.mark.parametrize("type_", ["withdrawal.settled", "withdrawal.expired", "withdrawal.rejected", "of.tomorrow"])
def test_the_type_decides_nothing_about_the_state(type_: str) -> None:
    """It says settled or expired while the snapshot says partially filled: the snapshot counts."""
    decision = at(ROW).take(whole(6, "partially_filled", type_))
    assert [effect.name for effect in decision.effects] == ["show_progress"]


def test_a_refused_event_leaves_the_state() -> None:
    """The state is a value: what a refusal computed is gone."""
    ledger = at(replace(ROW, fee_recognized_minor=-1, fee_total_minor=GREATEST))
    before = ledger.state
    assert isinstance(ledger.judge(sparse(6, "expired")), Refusal)
    assert ledger.state == before
