"""Rows of withdrawals: the version guard, sparse snapshots, and what is set once."""

from dataclasses import replace

import pytest

from sinks.domain.withdrawal_state import NotYet, Withdrawal
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

SET_ONCE = ("fee_total_minor", "total_locked_minor", "max_splits", "our_ref")
OTHER_TOTALS: Json = {
    "merchant_reference": "WD-8",
    "amount_total_minor": 1,
    "fee_total_minor": 2,
    "total_locked_minor": 3,
    "filled_minor": 4,
    "remaining_minor": 5,
    "refunded_minor": 6,
    "fee_recognized_minor": 7,
    "settled_splits": 8,
    "max_splits": 9,
}
"""Every total with a value that `ROW` does not have."""


def test_the_first_snapshot_makes_the_row() -> None:
    """Every total in its column, and nothing is marked."""
    ledger = Ledger()
    decision = ledger.take(whole(5, "partially_filled"))
    assert (decision.verdict, decision.reason, ledger.row) == ("advanced", None, ROW)
    assert (decision.fill, decision.tombstone, decision.fill_reversed, decision.fee_differs) == (
        None,
        None,
        None,
        False,
    )


def test_a_sparse_snapshot_makes_a_row_of_what_it_has() -> None:
    """Filled is zero where it is absent, all else is unknown."""
    ledger = Ledger()
    ledger.take(sparse(0, "open", amount_total_minor=100, remaining_minor=90))
    assert ledger.row == Withdrawal(WITHDRAWAL_ID, 0, "open", 100, 90, filled_minor=0)


@pytest.mark.parametrize("missing", ["amount_total_minor", "remaining_minor"])
def test_without_a_row_a_sparse_event_waits(missing: str) -> None:
    """With its fill; nothing of it is applied and nothing is emitted."""
    ledger = Ledger()
    assert isinstance(ledger.judge(filled(9, "settled", **{missing: None})), NotYet)


def test_a_higher_version_overwrites_the_totals() -> None:
    """And leaves alone what is set once."""
    ledger = at(ROW)
    decision = ledger.take(whole(6, "canceled_soon", **OTHER_TOTALS))
    assert decision.verdict == "advanced"
    assert ledger.row == replace(
        ROW,
        pg_version=6,
        status="canceled_soon",
        filled_minor=4,
        remaining_minor=5,
        refunded_minor=6,
        fee_recognized_minor=7,
        settled_splits=8,
    )


@pytest.mark.parametrize("version", [5, 4, 0])
def test_a_version_that_is_not_higher_changes_nothing(version: int) -> None:
    """The very same row stays, also with the same version; no effect goes out."""
    ledger = at(ROW)
    for status in ("settled", "expired", "rejected", "partially_filled", "open"):
        decision = ledger.take(whole(version, status, **{**OTHER_TOTALS, "remaining_minor": 0}))
        assert (decision.verdict, decision.reason, decision.effects) == ("late", "older_version", ())
        assert decision.state.row is ROW


@pytest.mark.parametrize("absent", [{}, dict.fromkeys(TOTALS)])
def test_what_is_absent_keeps_its_value(absent: Json) -> None:
    """Null too: only version and status move."""
    ledger = at(ROW)
    ledger.take(sparse(6, "open", **absent))
    assert ledger.row == replace(ROW, pg_version=6, status="open")


@pytest.mark.parametrize(
    "name", ["filled_minor", "remaining_minor", "refunded_minor", "fee_recognized_minor", "settled_splits"]
)
def test_zero_is_a_value(name: str) -> None:
    """It overwrites as any other does, where an absent one would not."""
    ledger = at(replace(ROW, refunded_minor=5))
    ledger.take(sparse(6, "open", **{name: 0}))
    assert ledger.row == replace(ROW, **{"refunded_minor": 5, "pg_version": 6, "status": "open", name: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SET_ONCE)
@pytest.mark.parametrize("version", [3, 6])
def test_what_is_set_once_is_taken_by_the_first_that_has_it(name: str, version: int) -> None:
    """Also by a late event, which then changes the row and nothing else; zero counts as having it."""
    empty: Json = {name: None}
    ledger = at(replace(ROW, **empty))  # type: ignore[arg-type]
    value: object = "WD-9" if name == "our_ref" else 0
    ledger.take(sparse(version, ROW.status, **{"merchant_reference" if name == "our_ref" else name: value}))
    changes: Json = {name: value, "pg_version": max(version, 5)}
    assert ledger.row == replace(ROW, **changes)  # type: ignore[arg-type]


def test_each_member_that_is_set_once_stands_alone() -> None:
    """The first that has one of them leaves the others to those that come after."""
    ledger = at(replace(ROW, fee_total_minor=None, total_locked_minor=None, max_splits=None, our_ref=None))
    for version, member in ((4, "max_splits"), (7, "fee_total_minor"), (2, "total_locked_minor")):
        ledger.take(sparse(version, ROW.status, **{member: TOTALS[member]}))
    ledger.take(sparse(3, "open", metadata={"payout_id": TICKET}))
    ledger.take(whole(1, "open", **OTHER_TOTALS))
    assert ledger.row == replace(ROW, pg_version=7)


@pytest.mark.parametrize("name", ["amount_total_minor", "pg_withdrawal_id"])
def test_the_total_is_never_overwritten(name: str) -> None:
    """It is set once by the event that makes the row."""
    ledger = at(ROW)
    ledger.take(whole(6, "open", **OTHER_TOTALS))
    assert getattr(ledger.row, name) == getattr(ROW, name)


def test_a_status_moves_no_marker_but_its_own() -> None:
    """What happened before stays known while the order goes on."""
    marked = replace(ROW, closed=True, close_enqueued=True, refund_enqueued=True, lock_released=True)
    marked = replace(marked, replacement_withdrawal_id="wdr_8")
    for status in ("open", "partially_filled", "settled", "expired", "rejected"):
        ledger = at(marked)
        ledger.take(sparse(6, status))
        assert ledger.row == replace(marked, pg_version=6, status=status)
    ledger = at(replace(marked, max_splits=None))
    ledger.take(sparse(4, "open", max_splits=4))
    assert ledger.row == marked
