"""The oracle's handlers of withdrawals and balance transactions, held to the contract's worked examples."""

from datetime import UTC, datetime

import pytest

from tests.conformance.payouts import EIGHT, FILL_1, FILL_2, FILL_3, ORDER, Payouts, Sent, reversal_of, totals


def test_eight_events_in_order(payouts: Payouts) -> None:
    """The order of the gateway's page: two statuses, four steps of progress, one close, and nothing at v8."""
    assert [payouts.send(*event) for event in EIGHT] == ["advanced"] * 8

    assert payouts.rows("SELECT topic, payload, dedupe_key, aggregatetype FROM pg_outbox ORDER BY seq") == [
        (
            "update_local_status",
            {"ticket": "WD-7", "status": "open"},
            "wdr_1_1_created:update_local_status",
            "withdrawal",
        ),
        (
            "update_local_status",
            {"ticket": "WD-7", "status": "open"},
            "wdr_1_2_matched:update_local_status",
            "withdrawal",
        ),
        *(
            (
                "show_progress",
                {"ticket": "WD-7", "filled_minor": filled, "amount_total_minor": 100_000},
                f"wdr_1_{version}_{kind}:show_progress",
                "withdrawal",
            )
            for version, kind, filled in (
                *((3, "filled", 30_000), (4, "matched", 30_000)),
                *((5, "filled", 70_000), (6, "matched", 70_000)),
            )
        ),
        (
            "close_withdrawal",
            {"withdrawal_id": "wdr_1", "ticket": "WD-7"},
            "withdrawal:wdr_1:close_withdrawal",
            "withdrawal",
        ),
    ]
    assert payouts.reasons == [None] * 7 + ["already_closed"]
    assert payouts.rows("SELECT leg_ref, fee_recognized_minor FROM pg_withdrawal_fills ORDER BY sequence") == [
        ("leg_1", 802),
        ("leg_2", 1_070),
        ("leg_3", 803),
    ]
    assert payouts.rows(
        "SELECT pg_version, status, filled_minor, remaining_minor, refunded_minor, fee_recognized_minor,"
        " settled_splits, max_splits, our_ref, closed_at IS NOT NULL FROM pg_withdrawals"
    ) == [(8, "settled", 100_000, 0, 0, 2_675, 3, 4, "WD-7", True)]


def test_fills_out_of_order_keep_the_newesttotals(payouts: Payouts) -> None:
    """Example C: fills land as v9, v11, v7; remaining is v11's and all three are kept."""
    sent = [
        payouts.send(version, "filled", "partially_filled", totals(filled, remaining, 0, 0), {"fill": fill})
        for version, filled, remaining, fill in (
            *((9, 70_000, 30_000, FILL_2), (11, 100_000, 0, FILL_3)),
            (7, 30_000, 70_000, FILL_1),
        )
    ]

    assert sent == ["advanced", "advanced", "late"]
    assert payouts.reasons == [None, None, "late_fact"]
    assert payouts.rows("SELECT remaining_minor, filled_minor FROM pg_withdrawals") == [(0, 100_000)]
    assert payouts.rows("SELECT leg_ref FROM pg_withdrawal_fills ORDER BY 1") == ["leg_1", "leg_2", "leg_3"]


def test_an_older_fill_does_not_undo_the_close(payouts: Payouts) -> None:
    """Example D: filled v5, filled v3, settled v8, and each again: closed once, both fills kept."""
    for version in (5, 3, 8, 3, 5, 8):
        payouts.send(*EIGHT[version - 1])

    assert payouts.effects == ["show_progress", "close_withdrawal"]
    assert payouts.rows("SELECT filled_minor, pg_version FROM pg_withdrawals") == [(100_000, 8)]
    assert payouts.rows("SELECT leg_ref FROM pg_withdrawal_fills ORDER BY 1") == ["leg_1", "leg_2"]
    assert payouts.rows("SELECT count(*) FROM redeliveries") == [3]


@pytest.mark.parametrize("status", ["expired", "canceled"])
def test_half_filled_and_over(payouts: Payouts, status: str) -> None:
    """Example E: 30,803 go back and 71,872 stay debited, of the 102,675 that were locked; once."""
    payouts.send(*EIGHT[4])
    ended = {**totals(70_000, 30_000, 1_872, 2), "refunded_minor": 30_000}
    assert payouts.send(9, status, status, ended, {}) == "advanced"
    assert payouts.send(10, status, "canceled", ended, {}) == "advanced"

    refunds = payouts.rows("SELECT payload FROM pg_outbox WHERE topic = 'refund_unfilled'")
    assert refunds == [
        {
            "withdrawal_id": "wdr_1",
            "ticket": "WD-7",
            "refunded_minor": 30_000,
            "fee_unused_minor": 803,
            "release_minor": 30_803,
            "debited_minor": 71_872,
        }
    ]
    assert payouts.reasons == [None, None, "already_refunded"]


def test_a_reversal_before_itsfill_of(payouts: Payouts) -> None:
    """Example F: compensated once, the fill is kept as reversed, and the later close is not hindered."""
    payouts.send(*EIGHT[0])
    told = {**reversal_of(FILL_1), "replacement_withdrawal_id": "wdr_2"}
    assert payouts.send(4, "fill_reversed", "open", {}, told) == "advanced"
    assert payouts.send(*EIGHT[2]) == "late"
    assert payouts.send(5, "fill_reversed", "open", {}, told) == "advanced"

    assert payouts.rows("SELECT payload FROM pg_outbox WHERE topic = 'compensate_reversed_fill'") == [
        {
            "withdrawal_id": "wdr_1",
            "leg_ref": "leg_1",
            "amount_minor": 30_000,
            "reason_code": "BANK_RECALL",
            "reverses_balance_transaction_id": "btxn_1",
            "reversal_balance_transaction_id": "btxn_1_back",
            "replacement_withdrawal_id": "wdr_2",
        }
    ]
    assert payouts.effects == ["update_local_status", "compensate_reversed_fill"]
    assert payouts.reasons == [None, None, "late_fact", "already_compensated"]
    moment = datetime(2026, 8, 21, 5, tzinfo=UTC)
    assert payouts.rows("SELECT reversed_at FROM pg_withdrawal_fills") == [moment]
    assert payouts.rows("SELECT replacement_withdrawal_id FROM pg_withdrawals") == ["wdr_2"]


def test_a_stale_reversal_compensates_and_opens_again(payouts: Payouts) -> None:
    """A reversal of v6 after the close: totals stay, the order is open again, a second close is told to nobody."""
    payouts.send(*EIGHT[4])
    payouts.send(*EIGHT[6])
    assert payouts.send(6, "fill_reversed", "partially_filled", {"filled_minor": 1}, reversal_of(FILL_2)) == "late"
    assert payouts.rows("SELECT closed_at, filled_minor FROM pg_withdrawals") == [(None, 100_000)]
    assert payouts.send(*EIGHT[7]) == "advanced"

    assert payouts.effects == ["show_progress", "close_withdrawal", "compensate_reversed_fill"]
    assert payouts.reasons == [None, None, "late_fact", "already_closed"]
    assert payouts.rows("SELECT closed_at IS NOT NULL FROM pg_withdrawals") == [True]


@pytest.mark.parametrize("reversed_first", [True, False])
def test_a_chunk_reversed_after_settlement_keeps_the_order_open(payouts: Payouts, reversed_first: bool) -> None:
    """W14: with a settled tombstone the order is not closed (again), in whatever order the two come."""
    reversal: Sent = (9, "fill_reversed", "settled", totals(100_000, 0, 2_675, 3), reversal_of(FILL_3))
    settled: Sent = (8 if not reversed_first else 10, "settled", "settled", totals(100_000, 0, 2_675, 3), {})
    for event in (reversal, settled) if reversed_first else (settled, reversal):
        assert payouts.send(*event) == "advanced"
    payouts.send(11, "settled", "settled", {}, {})

    closes = [] if reversed_first else ["close_withdrawal"]
    assert [effect for effect in payouts.effects if effect == "close_withdrawal"] == closes
    assert payouts.rows("SELECT closed_at FROM pg_withdrawals") == [None]
    assert payouts.reasons[-1] == "reversed_after_settlement"


def test_a_reversal_that_ends_the_order_tells_both(payouts: Payouts) -> None:
    """The compensation first, then the one-shot of the status that it brought."""
    payouts.send(*EIGHT[2])
    payouts.send(4, "fill_reversed", "expired", {"refunded_minor": 70_000}, reversal_of(FILL_1))
    payouts.send(5, "fill_reversed", "rejected", {}, reversal_of(FILL_1))

    assert payouts.effects == ["show_progress", "compensate_reversed_fill", "refund_unfilled", "release_user_lock"]
    assert payouts.reasons == [None, None, "already_compensated"]


def test_what_is_too_sparse_waits_for_its_builder(payouts: Payouts) -> None:
    """The builder is applied first, then those that waited in arrival order, fills and reversals with them."""
    assert payouts.send(*EIGHT[5]) == "parked"
    sparse_fill = {"filled_minor": 30_000, "amount_total_minor": None}
    assert payouts.send(3, "filled", "partially_filled", sparse_fill, {"fill": FILL_1}) == "parked"
    assert payouts.send(*EIGHT[5]) == "redelivered"
    assert payouts.rows("SELECT parked_reason FROM pg_webhook_inbox") == ["snapshot", "snapshot"]

    assert payouts.send(*EIGHT[0]) == "advanced"

    assert payouts.rows("SELECT verdict, parked_reason FROM pg_webhook_inbox ORDER BY arrival_seq") == [
        ("advanced", None),
        ("late", None),
        ("advanced", None),
    ]
    assert payouts.rows("SELECT topic, version FROM pg_outbox ORDER BY seq") == [
        ("update_local_status", 1),
        ("show_progress", 6),
    ]
    assert payouts.rows("SELECT leg_ref FROM pg_withdrawal_fills") == ["leg_1"]


def test_set_once_members_come_from_the_first_event_that_has_them(payouts: Payouts) -> None:
    """Late ones fill what is empty and overwrite nothing; absent totals keep their value."""
    payouts.send(5, "filled", "open", {"amount_total_minor": 100_000, "remaining_minor": 7}, {"fill": FILL_1})
    payouts.send(4, "created", "open", {"metadata": {"payout_id": "p-1"}, "fee_total_minor": 2_675}, {})
    payouts.send(6, "matched", "open", {**ORDER, "amount_total_minor": 1, "fee_total_minor": 9}, {})

    assert payouts.rows(
        "SELECT our_ref, fee_total_minor, max_splits, amount_total_minor, remaining_minor FROM pg_withdrawals"
    ) == [("p-1", 2_675, 4, 100_000, 7)]


def test_a_refused_builder_builds_nothing(payouts: Payouts) -> None:
    """Its waiting companions go on waiting for the next one."""
    payouts.send(*EIGHT[2])
    assert payouts.send(2, "matched", "open", {}, {}, "wdr_2") == "parked"
    assert payouts.send(3, "filled", "open", ORDER | {"remaining_minor": 5}, {"fill": FILL_1}, "wdr_2") == "quarantined"
    assert payouts.rows("SELECT parked_reason FROM pg_webhook_inbox WHERE object_id = 'wdr_2'") == ["snapshot"]

    assert payouts.send(4, "created", "open", ORDER | {"remaining_minor": 5}, {}, "wdr_2") == "advanced"
    assert payouts.reasons == [None, "older_version", None]


def test_a_refund_beyond_bigint_is_refused(payouts: Payouts) -> None:
    """No effect may tell an amount that no reader's bigint holds."""
    assert payouts.send(1, "expired", "expired", totals(2**63 - 1, 0, 1, 0), {}) == "quarantined"
    assert payouts.rows("SELECT reason FROM quarantined_events") == ["body_shape"]


def test_balance_transactions_are_deduped_on_their_id(payouts: Payouts) -> None:
    """The first one stays; the same again is known, whatever its balance_after; another content is set aside."""
    told = {"amount_minor": 5, "created_at": "2026-08-21T03:00:00Z", "source": {"id": "wdr_1"}}
    assert payouts.post("evt_1", balance_after={"available_minor": 7}, **told) == "immutable"
    assert (
        payouts.post("evt_2", balance_after=None, **{**told, "created_at": "2026-08-21T10:00:00+07:00"}) == "immutable"
    )
    assert payouts.post("evt_3", **{**told, "source": None}) == "quarantined"
    assert payouts.post("evt_4", **{**told, "amount_minor": "5"}) == "quarantined"
    assert payouts.post("evt_5", **{**told, "created_at": "today"}) == "quarantined"

    assert payouts.reasons == [None, "already_recorded"]
    reasons = payouts.rows("SELECT reason FROM quarantined_events ORDER BY id")
    assert reasons == ["transaction_collision", "body_shape", "body_date"]
    assert payouts.rows("SELECT btxn_id, amount_minor, source_id, merchant_id, balance_after FROM pg_balance_txns") == [
        ("btxn_1", 5, "wdr_1", "mer_1", {"available_minor": 7})
    ]
    assert payouts.effects == []
