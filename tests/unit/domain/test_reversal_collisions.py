"""Reversals that contradict what is known: another one of the chunk, the chunk itself, or who owns a transaction."""

from dataclasses import replace

import pytest

from sinks.domain.withdrawal_state import Fill, Tombstone
from tests.unit.domain.test_reversals import CLOSED, REVERSED_AT, STONE, chunk, compensation, holding
from tests.unit.domain.withdrawal_samples import LEG, ROW, WITHDRAWAL_ID, Ledger, taken_back


@pytest.mark.parametrize(
    ("name", "stone"),
    [
        ("pg_withdrawal_id", replace(STONE, pg_withdrawal_id="wdr_8")),
        ("reason_code", replace(STONE, reason_code="ACCOUNT_FROZEN")),
        ("reverses_balance_transaction_id", replace(STONE, reverses_balance_transaction_id="btxn_x")),
        ("reversal_balance_transaction_id", replace(STONE, reversal_balance_transaction_id="btxn_x")),
        ("amount_minor", replace(STONE, amount_minor=29_999)),
        ("replacement_withdrawal_id", replace(STONE, replacement_withdrawal_id="wdr_9")),
    ],
)
@pytest.mark.parametrize("version", [6, 4])
def test_other_content_is_a_collision(name: str, stone: Tombstone, version: int) -> None:
    """Late or not; the first one seen stays, and the detail names what differs."""
    refusal = holding(ROW, stone).refusal(taken_back(version))
    assert refusal.reason == "reversal_collision"
    assert refusal.detail == f"the reversal of chunk '{LEG}' is known with another {name}"


def test_a_lost_replacement_is_other_content() -> None:
    """Null and a withdrawal are not the same."""
    refusal = holding(ROW, STONE).refusal(taken_back(6, replacement_withdrawal_id="wdr_9"))
    assert refusal.reason == "reversal_collision"


@pytest.mark.parametrize(
    ("reverses", "reversal"),
    [
        ("btxn_fill_1", "btxn_x"),
        ("btxn_x", "btxn_fill_1"),
        ("btxn_back_1", "btxn_x"),
        ("btxn_x", "btxn_back_1"),
    ],
)
@pytest.mark.parametrize("owner", [WITHDRAWAL_ID, "wdr_8"])
def test_a_transaction_belongs_to_one_reversal(reverses: str, reversal: str, owner: str) -> None:
    """Known under another chunk, in either role and whatever its withdrawal, it contradicts."""
    other = replace(
        STONE,
        leg_ref="leg_other",
        pg_withdrawal_id=owner,
        reverses_balance_transaction_id=reverses,
        reversal_balance_transaction_id=reversal,
    )
    refusal = holding(ROW, other).refusal(taken_back(6))
    assert refusal.reason == "reversal_collision"
    assert "'leg_other'" in refusal.detail


def test_reversals_of_other_transactions_do_not_meet() -> None:
    """Each chunk has its own."""
    other = replace(STONE, leg_ref="leg_2", reverses_balance_transaction_id="a", reversal_balance_transaction_id="b")
    assert holding(ROW, other).take(taken_back(6)).effects == (compensation(),)


@pytest.mark.parametrize(
    ("name", "fill"),
    [
        ("pg_withdrawal_id", replace(chunk(), pg_withdrawal_id="wdr_8")),
        ("amount_minor", replace(chunk(), amount_minor=30_001)),
        ("balance_transaction_id", replace(chunk(), balance_transaction_id="btxn_x")),
    ],
)
@pytest.mark.parametrize("version", [6, 4])
def test_a_reversal_that_contradicts_its_chunk_is_refused(name: str, fill: Fill, version: int) -> None:
    """It would compensate another amount than was paid out."""
    refusal = holding(ROW, fill=fill).refusal(taken_back(version))
    assert refusal.reason == "reversal_collision"
    assert refusal.detail == f"the reversal of chunk '{LEG}' takes back a chunk with another {name}"


def test_a_chunk_without_its_transaction_can_be_taken_back() -> None:
    """It contradicts nothing."""
    ledger = holding(ROW, fill=replace(chunk(), balance_transaction_id=None))
    assert ledger.take(taken_back(6)).fill_reversed == (LEG, REVERSED_AT)


def test_a_collision_leaves_everything() -> None:
    """Nothing is opened again, no total moves; without a row, none is built."""
    ledger = holding(CLOSED, replace(STONE, amount_minor=1))
    assert ledger.refusal(taken_back(6, replacement_withdrawal_id="wdr_9")).reason == "reversal_collision"
    assert ledger.row == CLOSED
    empty = Ledger()
    empty.facts.tombstones[LEG] = replace(STONE, pg_withdrawal_id="wdr_8")
    assert empty.refusal(taken_back(6)).reason == "reversal_collision"
