"""The oracle's facts of withdrawals: what contradicts a chunk or its reversal is set aside whole."""

from typing import Any

import pytest

from tests.conformance.payouts import EIGHT, FILL_1, FILL_2, FILL_3, Payouts, reversal_of, totals


@pytest.mark.parametrize(
    ("changed", "order"),
    [
        *(({name: value}, "wdr_1") for name, value in {"amount_minor": 1, "sequence": None}.items()),
        ({"settled_at": "2026-08-21T03:19:47.904Z"}, "wdr_1"),
        ({"balance_transaction_id": "btxn_9"}, "wdr_1"),
        ({}, "wdr_9"),
    ],
)
def test_a_contradictory_fill_is_quarantined_whole(payouts: Payouts, changed: dict[str, Any], order: str) -> None:
    """The first-seen fill stays, and nothing of the other's event is applied."""
    payouts.send(*EIGHT[2])
    other = {"fill": {**FILL_1, **changed}}

    assert payouts.send(9, "filled", "settled", totals(100_000, 0, 2_675, 3), other, order) == "quarantined"
    assert payouts.rows("SELECT reason FROM quarantined_events") == ["fill_collision"]
    assert payouts.rows("SELECT pg_withdrawal_id, pg_version FROM pg_withdrawals") == [("wdr_1", 3)]
    assert payouts.effects == ["show_progress"]


@pytest.mark.parametrize(
    "beside",
    [
        reversal_of(FILL_1, reason_code="ACCOUNT_FROZEN"),
        reversal_of(FILL_1, balance_transaction_id="btxn_9"),
        reversal_of({**FILL_1, "amount_minor": 1}),
        reversal_of({**FILL_1, "balance_transaction_id": "btxn_9"}, balance_transaction_id="btxn_1_back"),
        {**reversal_of(FILL_1), "replacement_withdrawal_id": "wdr_3"},
        reversal_of({**FILL_2, "balance_transaction_id": "btxn_1"}, balance_transaction_id="btxn_9"),
        reversal_of({**FILL_2, "balance_transaction_id": "btxn_1_back"}, balance_transaction_id="btxn_9"),
        reversal_of(FILL_2, balance_transaction_id="btxn_1"),
        reversal_of({**FILL_3, "amount_minor": 1}),
        reversal_of({**FILL_3, "balance_transaction_id": "btxn_9"}),
    ],
)
def test_a_contradictory_reversal_is_quarantined_whole(payouts: Payouts, beside: dict[str, Any]) -> None:
    """Another content, a transaction of another leg, or a chunk that was told otherwise."""
    payouts.send(*EIGHT[6])
    payouts.send(8, "fill_reversed", "open", {}, reversal_of(FILL_1))

    assert payouts.send(9, "fill_reversed", "expired", {}, beside) == "quarantined"
    assert payouts.rows("SELECT reason FROM quarantined_events") == ["reversal_collision"]
    assert payouts.effects == ["close_withdrawal", "compensate_reversed_fill"]
    assert payouts.rows("SELECT leg_ref FROM pg_withdrawal_fill_reversals") == ["leg_1"]


def test_a_fill_that_its_tombstone_contradicts(payouts: Payouts) -> None:
    """The tombstone came first: a fill of another amount or transaction is set aside; one that names none is kept."""
    payouts.send(*EIGHT[0])
    payouts.send(2, "fill_reversed", "open", {}, reversal_of(FILL_1))

    for version, changed in ((3, {"amount_minor": 1}), (4, {"balance_transaction_id": "btxn_9"})):
        assert payouts.send(version, "filled", "open", {}, {"fill": {**FILL_1, **changed}}) == "quarantined"
    nameless = {"fill": {**FILL_1, "balance_transaction_id": None}}
    assert payouts.send(5, "filled", "open", {}, nameless) == "advanced"
    assert payouts.rows("SELECT reversed_at IS NOT NULL FROM pg_withdrawal_fills") == [True]
