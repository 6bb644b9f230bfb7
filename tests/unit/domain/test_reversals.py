"""Reversals of chunks: each is compensated once, also from a late event; what contradicts what is known is refused."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from schemas.effects import CompensateReversedFill, RefundUnfilled, ReleaseUserLock
from sinks.domain.decision import EffectDraft
from sinks.domain.withdrawal_state import Fill, Tombstone, Withdrawal
from tests.unit.domain.withdrawal_samples import (
    LEG,
    ROW,
    TICKET,
    TOTALS,
    WITHDRAWAL_ID,
    Json,
    Ledger,
    at,
    filled,
    sparse,
    taken_back,
    whole,
)

REVERSED_AT = datetime(2026, 8, 21, 3, 19, 47, 985_000, tzinfo=UTC)
STONE = Tombstone(
    leg_ref=LEG,
    pg_withdrawal_id=WITHDRAWAL_ID,
    reason_code="BANK_RECALL",
    reverses_balance_transaction_id="btxn_fill_1",
    reversal_balance_transaction_id="btxn_back_1",
    reversed_at=REVERSED_AT,
    amount_minor=30_000,
    status_snapshot="partially_filled",
)
"""What `taken_back` brings."""
CLOSED = replace(ROW, status="settled", remaining_minor=0, closed=True, close_enqueued=True)


def compensation(version: int = 6, replacement: str | None = None) -> EffectDraft:
    """The effect, keyed by its chunk."""
    payload = CompensateReversedFill(
        withdrawal_id=WITHDRAWAL_ID,
        leg_ref=LEG,
        amount_minor=30_000,
        reason_code="BANK_RECALL",
        reverses_balance_transaction_id="btxn_fill_1",
        reversal_balance_transaction_id="btxn_back_1",
        replacement_withdrawal_id=replacement,
    )
    return EffectDraft(
        "compensate_reversed_fill", f"withdrawal-fill:{LEG}:reverse:compensate_reversed_fill", payload, version
    )


def holding(row: Withdrawal = ROW, *tombstones: Tombstone, fill: Fill | None = None) -> Ledger:
    """The withdrawal with what is known of its chunks."""
    ledger = at(row)
    ledger.facts.tombstones = {tombstone.leg_ref: tombstone for tombstone in tombstones}
    if fill is not None:
        ledger.facts.fills[fill.leg_ref] = fill
    return ledger


def chunk() -> Fill:
    """What `filled` brings."""
    found = filled(3).fill
    assert found is not None
    return found


@pytest.mark.parametrize("status", ["partially_filled", "settled", "open", "of_tomorrow"])
def test_a_reversal_that_is_news_compensates_and_tells_no_status(status: str) -> None:
    """The row takes its snapshot; neither progress nor close nor status goes out beside the compensation."""
    ledger = at(ROW)
    decision = ledger.take(taken_back(6, status, remaining_minor=0))
    assert (decision.verdict, decision.reason, decision.effects) == ("advanced", None, (compensation(),))
    assert decision.tombstone == replace(STONE, status_snapshot=status)
    assert (decision.fill, decision.fill_reversed, decision.fee_differs) == (None, None, False)
    assert ledger.row == replace(ROW, pg_version=6, status=status, remaining_minor=0)


@pytest.mark.parametrize("version", [5, 2])
def test_a_late_reversal_compensates_too(version: int) -> None:
    """The one effect that goes out from a stale event; no total moves, and its status ends nothing."""
    for status in ("partially_filled", "expired", "rejected"):
        ledger = at(ROW)
        decision = ledger.take(taken_back(version, status, filled_minor=1))
        assert (decision.verdict, decision.reason, decision.effects) == ("late", "late_fact", (compensation(version),))
        assert (decision.tombstone, ledger.row) == (replace(STONE, status_snapshot=status), ROW)


def test_a_late_reversal_ends_nothing_that_is_not_ended_yet() -> None:
    """A row that was taken over as expired, without its marker, is not refunded by an event of the past."""
    ledger = at(replace(ROW, status="expired"))
    decision = ledger.take(taken_back(4, "expired"))
    assert (decision.effects, ledger.row.refund_enqueued) == ((compensation(4),), False)


def test_the_event_that_makes_the_row_may_be_a_reversal() -> None:
    """With its snapshot as the row."""
    ledger = Ledger()
    assert ledger.take(taken_back(5)).effects == (compensation(5),)
    assert ledger.row == ROW


@pytest.mark.parametrize(
    ("version", "verdict", "reason"), [(6, "advanced", "already_compensated"), (4, "late", "older_version")]
)
def test_a_known_reversal_is_not_compensated_again(version: int, verdict: str, reason: str) -> None:
    """The instant and the order's status of another event about it do not count."""
    ledger = holding(ROW, replace(STONE, status_snapshot="settled", reversed_at=datetime(2026, 1, 1, tzinfo=UTC)))
    decision = ledger.take(taken_back(version, "open"))
    assert (decision.verdict, decision.reason, decision.effects) == (verdict, reason, ())
    assert decision.tombstone is None
    assert ledger.row.pg_version == max(version, 5)


@pytest.mark.parametrize("status", ["expired", "canceled"])
def test_a_reversal_that_ends_the_order_refunds_the_rest_too(status: str) -> None:
    """Compensation first; once, as from any other event."""
    ledger = at(ROW)
    decision = ledger.take(taken_back(6, status, refunded_minor=70_000))
    refund = RefundUnfilled(WITHDRAWAL_ID, TICKET, 70_000, 1_873, 71_873, 30_802)
    key = f"withdrawal:{WITHDRAWAL_ID}:refund_unfilled"
    assert decision.effects == (compensation(), EffectDraft("refund_unfilled", key, refund, 6))
    assert (decision.reason, ledger.row.refund_enqueued) == (None, True)
    other = taken_back(7, "expired", fill_leg_ref="leg_2", **OTHER_IDS)
    again = ledger.take(other)
    assert [effect.name for effect in again.effects] == ["compensate_reversed_fill"]
    assert again.reason == "already_refunded"


OTHER_IDS: Json = {
    "fill_balance_transaction_id": "btxn_fill_2",
    "reversal_reverses_balance_transaction_id": "btxn_fill_2",
    "reversal_balance_transaction_id": "btxn_back_2",
}


def test_a_reversal_that_rejects_the_order_releases_the_lock_too() -> None:
    """Likewise."""
    ledger = at(ROW)
    decision = ledger.take(taken_back(6, "rejected"))
    release = EffectDraft(
        "release_user_lock", f"withdrawal:{WITHDRAWAL_ID}:release_user_lock", ReleaseUserLock(WITHDRAWAL_ID, TICKET), 6
    )
    assert (decision.effects, decision.reason) == ((compensation(), release), None)
    assert ledger.row.lock_released is True
    again = ledger.take(taken_back(7, "rejected", fill_leg_ref="leg_2", **OTHER_IDS))
    assert ([effect.name for effect in again.effects], again.reason) == (
        ["compensate_reversed_fill"],
        "already_released",
    )


def test_a_known_reversal_may_still_end_the_order() -> None:
    """Then only the one-shot goes out, and the reason tells of the compensation."""
    decision = holding(ROW, STONE).take(taken_back(6, "expired"))
    assert ([effect.name for effect in decision.effects], decision.reason) == (
        ["refund_unfilled"],
        "already_compensated",
    )
    again = holding(replace(ROW, refund_enqueued=True), STONE).take(taken_back(6, "expired"))
    assert (again.effects, again.reason) == ((), "already_compensated")


def test_a_reversal_whose_refund_cannot_be_computed_is_refused() -> None:
    """Whole: it is not compensated either."""
    row = replace(ROW, fee_total_minor=(1 << 63) - 1)
    members = dict.fromkeys(TOTALS) | {"fee_recognized_minor": -1}
    refusal = at(row).refusal(taken_back(6, "expired", **members))
    assert refusal.reason == "body_shape"
    assert at(row).take(taken_back(4, "expired", **members)).effects == (compensation(4),)


@pytest.mark.parametrize("version", [6, 4])
@pytest.mark.parametrize("known", [False, True])
def test_a_reversal_opens_the_order_again(version: int, known: bool) -> None:
    """Late or not, known or not: the row is open and remembers that the close went out."""
    ledger = holding(CLOSED, *([STONE] if known else []))
    ledger.take(taken_back(version, "settled", **dict.fromkeys(TOTALS)))
    assert ledger.row == replace(CLOSED, pg_version=max(version, 5), closed=False)


@pytest.mark.parametrize("version", [6, 4])
@pytest.mark.parametrize(("sent", "kept"), [("wdr_9", "wdr_9"), (None, "wdr_8"), ("", "")])
def test_the_replacement_is_that_of_the_event_or_stays(version: int, sent: str | None, kept: str) -> None:
    """The row takes it from late events too, and never loses it; the tombstone and the effect tell the event's own."""
    ledger = at(replace(ROW, replacement_withdrawal_id="wdr_8"))
    decision = ledger.take(taken_back(version, replacement_withdrawal_id=sent))
    assert ledger.row.replacement_withdrawal_id == kept
    assert decision.effects == (compensation(version, sent),)
    assert decision.tombstone == replace(STONE, replacement_withdrawal_id=sent)


def test_a_replacement_of_another_type_of_event_is_none() -> None:
    """Only a reversal names one."""
    ledger = at(ROW)
    ledger.take(sparse(6, "open", replacement_withdrawal_id="wdr_8"))
    assert ledger.row.replacement_withdrawal_id is None


@pytest.mark.parametrize("version", [6, 4])
def test_a_late_reversal_also_brings_what_is_set_once(version: int) -> None:
    """Like every event."""
    ledger = at(replace(ROW, our_ref=None, max_splits=None))
    ledger.take(taken_back(version))
    assert (ledger.row.our_ref, ledger.row.max_splits) == (TICKET, 4)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("version", [6, 4])
def test_the_stored_chunk_is_marked(version: int, known: bool) -> None:
    """Once, at the instant of the reversal's event."""
    ledger = holding(ROW, *([STONE] if known else []), fill=chunk())
    assert ledger.take(taken_back(version)).fill_reversed == (LEG, REVERSED_AT)
    assert ledger.facts.fills[LEG].reversed_at == REVERSED_AT
    assert ledger.take(taken_back(version + 1, created_at="2027-01-01T00:00:00Z")).fill_reversed is None


def settled_twice(*arrivals: str) -> Ledger:
    """Settled v7, the reversal v9 whose own snapshot is settled, and the summary v8 or v10, in the order given."""
    events = {
        "filled": filled(7, "settled", filled_minor=100_000, remaining_minor=0),
        "reversed": taken_back(9, "settled", filled_minor=100_000, remaining_minor=0),
        "summary": whole(8, "settled", filled_minor=100_000, remaining_minor=0),
        "later": whole(10, "settled", filled_minor=100_000, remaining_minor=0),
    }
    ledger = Ledger()
    for name in arrivals:
        ledger.take(events[name])
    return ledger


@pytest.mark.parametrize(
    ("arrivals", "closes"),
    [
        (("filled", "summary", "reversed", "later"), 1),
        (("filled", "reversed", "later", "summary"), 1),
        (("reversed", "filled", "summary", "later"), 0),
        (("reversed", "later", "filled"), 0),
        (("later", "reversed", "filled"), 1),
    ],
)
def test_an_order_that_settled_and_lost_a_chunk_stays_open(arrivals: tuple[str, ...], closes: int) -> None:
    """In whatever order: closed at most before the reversal was known, never after it; compensated once."""
    ledger = settled_twice(*arrivals)
    names = [effect.name for effect in ledger.effects]
    assert names.count("close_withdrawal") == closes
    assert names.count("compensate_reversed_fill") == 1
    assert (ledger.state.settled_tombstone, ledger.row.closed, ledger.row.status) == (True, False, "settled")
    assert ledger.facts.fills[LEG].reversed_at == REVERSED_AT
    assert ledger.take(whole(11, "settled", remaining_minor=0)).reason == "reversed_after_settlement"


def test_a_reversal_before_the_settlement_keeps_nothing_open() -> None:
    """Its snapshot was not settled: the order is paid out in full later, and closed once."""
    ledger = at(ROW)
    ledger.take(taken_back(6, "partially_filled"))
    assert ledger.state.settled_tombstone is False
    assert [effect.name for effect in ledger.take(whole(7, "settled", remaining_minor=0)).effects] == [
        "close_withdrawal"
    ]


def test_opened_by_a_late_reversal_and_closed_again_it_is_told_once() -> None:
    """The reversal's own snapshot was before the settlement, and it arrived after the close."""
    ledger = at(ROW)
    ledger.take(whole(8, "settled", remaining_minor=0))
    ledger.take(taken_back(6, "partially_filled"))
    assert ledger.row.closed is False
    again = ledger.take(whole(9, "settled", remaining_minor=0))
    assert (again.reason, ledger.row.closed) == ("already_closed", True)
    assert [effect.name for effect in ledger.effects] == ["close_withdrawal", "compensate_reversed_fill"]


def test_the_first_observation_of_a_reversal_tells_its_status() -> None:
    """A second event about it does not make it one of a settled order."""
    ledger = holding(ROW, STONE)
    ledger.take(taken_back(6, "settled"))
    assert ledger.state.settled_tombstone is False


def test_a_settled_reversal_stays_known() -> None:
    """A second one that was not settled does not forget it."""
    ledger = at(ROW)
    ledger.take(taken_back(6, "settled"))
    ledger.take(taken_back(4, "open", fill_leg_ref="leg_2", **OTHER_IDS))
    assert ledger.state.settled_tombstone is True
