"""Chunks of withdrawals: each is kept once, from late events too, and what contradicts it is refused."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sinks.domain.withdrawal_state import Fill, Tombstone, WithdrawalReading
from tests.unit.domain.withdrawal_samples import LEG, ROW, WITHDRAWAL_ID, Json, Ledger, at, filled, sparse, taken_back

KEPT = Fill(
    leg_ref=LEG,
    pg_withdrawal_id=WITHDRAWAL_ID,
    amount_minor=30_000,
    sequence=1,
    fee_recognized_minor=802,
    settled_at=datetime(2026, 8, 21, 3, 19, 47, 903_000, tzinfo=UTC),
    auto_confirm_at=datetime(2026, 8, 21, 6, 19, 47, 903_000, tzinfo=UTC),
    balance_transaction_id="btxn_fill_1",
)
"""What `filled` brings."""
LATER = KEPT.settled_at and KEPT.settled_at + timedelta(microseconds=1)


def holding(fill: Fill | None = None, tombstone: Tombstone | None = None) -> Ledger:
    """The withdrawal at version 5, with what is known of the leg."""
    ledger = at(ROW)
    if fill is not None:
        ledger.facts.fills[fill.leg_ref] = fill
    if tombstone is not None:
        ledger.facts.tombstones[tombstone.leg_ref] = tombstone
    return ledger


def tombstone() -> Tombstone:
    """What `taken_back` brings."""
    found = taken_back(4).tombstone
    assert found is not None
    return found


def test_a_chunk_is_kept() -> None:
    """By the event that is news, with its effect beside it."""
    decision = at(ROW).take(filled(6))
    assert (decision.fill, decision.verdict, decision.reason) == (KEPT, "advanced", None)
    assert [effect.name for effect in decision.effects] == ["show_progress"]
    assert (decision.tombstone, decision.fill_reversed) == (None, None)


@pytest.mark.parametrize("version", [5, 3])
def test_a_late_chunk_is_kept_too(version: int) -> None:
    """And nothing else: no total moves and no effect goes out."""
    decision = at(ROW).take(filled(version, "settled", filled_minor=5, remaining_minor=0))
    assert (decision.fill, decision.verdict, decision.reason) == (KEPT, "late", "late_fact")
    assert (decision.effects, decision.state.row) == ((), ROW)


def test_the_event_that_makes_the_row_keeps_its_chunk() -> None:
    """The first of all may be a fill."""
    assert Ledger().take(filled(3)).fill == KEPT


def test_a_chunk_of_another_type_is_none() -> None:
    """The summary lists them again, and a matched event has none: only `withdrawal.filled` appends."""
    decision = at(ROW).take(sparse(6, "settled", "withdrawal.settled", fill={"leg_ref": LEG, "amount_minor": 1}))
    assert decision.fill is None


@pytest.mark.parametrize(("version", "verdict", "reason"), [(6, "advanced", None), (4, "late", "older_version")])
@pytest.mark.parametrize("reversed_at", [None, KEPT.settled_at])
def test_the_same_chunk_again_is_known(
    version: int, verdict: str, reason: str | None, reversed_at: datetime | None
) -> None:
    """The totals move as for any other event; whether it was reversed does not count."""
    ledger = holding(replace(KEPT, reversed_at=reversed_at))
    again = filled(version, fill_settled_at="2026-08-21T10:19:47.90300000+07:00")
    decision = ledger.take(again)
    assert (decision.fill, decision.fill_reversed) == (None, None)
    assert (decision.verdict, decision.reason) == (verdict, reason)


@pytest.mark.parametrize("unknown", [{}, {"sequence": None}, {"settled_at": None, "balance_transaction_id": None}])
def test_nulls_are_equal(unknown: Json) -> None:
    """A chunk without a member is the same chunk without it again."""
    ledger = holding(replace(KEPT, **unknown))  # type: ignore[arg-type]
    decision = ledger.take(filled(6, **{f"fill_{name}": None for name in unknown}))
    assert (decision.fill, decision.verdict) == (None, "advanced")


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("pg_withdrawal_id", replace(KEPT, pg_withdrawal_id="wdr_8")),
        ("sequence", replace(KEPT, sequence=2)),
        ("sequence", replace(KEPT, sequence=None)),
        ("amount_minor", replace(KEPT, amount_minor=30_001)),
        ("fee_recognized_minor", replace(KEPT, fee_recognized_minor=803)),
        ("fee_recognized_minor", replace(KEPT, fee_recognized_minor=None)),
        ("settled_at", replace(KEPT, settled_at=LATER)),
        ("settled_at", replace(KEPT, settled_at=None)),
        ("auto_confirm_at", replace(KEPT, auto_confirm_at=None)),
        ("balance_transaction_id", replace(KEPT, balance_transaction_id="btxn_other")),
        ("balance_transaction_id", replace(KEPT, balance_transaction_id=None)),
    ],
)
@pytest.mark.parametrize("version", [6, 4])
def test_other_content_is_a_collision(name: str, other: Fill, version: int) -> None:
    """Late or not; the first one seen stays, and the detail names what differs."""
    refusal = holding(other).refusal(filled(version))
    assert refusal.reason == "fill_collision"
    assert refusal.detail == f"chunk '{LEG}' was seen with another {name}"


def test_a_chunk_whose_reversal_came_first_is_marked() -> None:
    """At the reversal's instant."""
    stone = tombstone()
    decision = holding(tombstone=stone).take(filled(6))
    assert decision.fill == replace(KEPT, reversed_at=stone.reversed_at)
    assert (decision.fill_reversed, [effect.name for effect in decision.effects]) == (None, ["show_progress"])


@pytest.mark.parametrize(
    ("name", "stone"),
    [
        ("pg_withdrawal_id", replace(tombstone(), pg_withdrawal_id="wdr_8")),
        ("amount_minor", replace(tombstone(), amount_minor=1)),
        ("balance_transaction_id", replace(tombstone(), reverses_balance_transaction_id="btxn_other")),
    ],
)
@pytest.mark.parametrize("version", [6, 4])
def test_a_chunk_that_contradicts_its_reversal_is_refused(name: str, stone: Tombstone, version: int) -> None:
    """The reversal was compensated with its own amount: the chunk may not tell another."""
    refusal = holding(tombstone=stone).refusal(filled(version))
    assert refusal.reason == "fill_collision"
    assert refusal.detail == f"chunk '{LEG}' was reversed with another {name}"


def test_a_chunk_without_its_transaction_contradicts_no_reversal() -> None:
    """It names none."""
    stone = tombstone()
    decision = holding(tombstone=stone).take(filled(6, fill_balance_transaction_id=None))
    assert decision.fill == replace(KEPT, balance_transaction_id=None, reversed_at=stone.reversed_at)


def test_a_collision_moves_no_total() -> None:
    """The whole event is refused, its snapshot too; without a row, nothing is built."""
    ledger = holding(replace(KEPT, amount_minor=1))
    assert ledger.refusal(filled(6, "settled", remaining_minor=0)).reason == "fill_collision"
    assert ledger.row == ROW
    empty = Ledger()
    empty.facts.fills[LEG] = replace(KEPT, pg_withdrawal_id="wdr_8")
    assert empty.refusal(filled(6)).reason == "fill_collision"


def differing(given: WithdrawalReading, ledger: Ledger | None = None) -> bool:
    """Whether the chunk's fee is counted as another than the running total gives."""
    return (ledger or at(ROW)).take(given).fee_differs


@pytest.mark.parametrize(
    ("fee", "filled_minor", "differs"),
    [(802, 30_000, False), (803, 30_000, True), (803, 100_000, False), (802, 100_000, True), (0, 30_000, True)],
)
@pytest.mark.parametrize("version", [6, 4])
def test_a_fee_is_checked_against_the_running_total(fee: int, filled_minor: int, differs: bool, version: int) -> None:
    """By the event's own total, late or not; it is counted, and kept as it was sent."""
    given = filled(version, fill_fee_recognized_minor=fee, filled_minor=filled_minor)
    assert differing(given) is differs
    kept = at(ROW).take(given).fill
    assert kept is not None
    assert kept.fee_recognized_minor == fee


@pytest.mark.parametrize("member", ["fill_fee_recognized_minor", "filled_minor"])
def test_a_fee_that_cannot_be_checked_is_not_counted(member: str) -> None:
    """What the event does not say is not made up."""
    assert differing(filled(6, **{"fill_fee_recognized_minor": 5, member: None})) is False


def test_the_orders_fee_and_total_are_the_rows() -> None:
    """The row's after the event: what the event brings first counts already."""
    wrong = {"fill_fee_recognized_minor": 5}
    assert differing(filled(6, **wrong, fee_total_minor=None, amount_total_minor=None)) is True
    assert differing(filled(6, **wrong, fee_total_minor=None), at(replace(ROW, fee_total_minor=None))) is False
    assert differing(filled(4, **wrong), at(replace(ROW, fee_total_minor=None))) is True
    assert differing(filled(6, **wrong), at(replace(ROW, amount_total_minor=0))) is False
    assert differing(filled(6, **wrong), at(replace(ROW, amount_total_minor=-1))) is False
