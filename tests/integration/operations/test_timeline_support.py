"""`tallyhook timeline --support`: every delivery, verdict, reason and effect of an object; and what `explain` adds."""

from tests.integration.operations.operated import Operated, deposit_body
from tests.integration.operations.set_aside import set_aside_row
from tests.integration.operations.timeline_rows import (
    CHUNKS,
    ORDER,
    TICKET,
    insert,
    insert_deposit,
    insert_effect,
    insert_event,
    insert_fill,
    insert_the_order_half_way,
    insert_withdrawal,
)


def test_deliveries_stand_in_order_of_arrival(quiet: Operated) -> None:
    """First and later ones with place, verdict and reason; the ones set aside too; then the order of versions."""
    insert_the_order_half_way(quiet)
    quiet.set_aside([set_aside_row(quiet, "evt_bad", ORDER, deposit_body("evt_bad", ORDER, 4, "open"), 3)])
    told = quiet.json("timeline", ORDER, "--support")
    assert told["view"] == "support"
    support = told["objects"][0]["support"]
    arrived = [(event["arrival"], event["event_id"], event["version"]) for event in support["events"]]
    assert arrived == [(1, "evt_5", 5), (2, "evt_3", 3), (3, "evt_6", 6), (4, "evt_bad", 4)]
    events_topic = quiet.names.events
    deliveries = [
        (event["event_id"], one["source"], one["verdict"], one["reason"])
        for event in support["events"]
        for one in event["deliveries"]
    ]
    assert deliveries == [
        ("evt_5", f"{events_topic}[2]@10", "advanced", None),
        ("evt_5", f"{events_topic}[2]@77", "redelivered", "seen_before"),
        ("evt_3", f"{events_topic}[2]@20", "late", "late_fact"),
        ("evt_6", f"{events_topic}[2]@40", "advanced", None),
        ("evt_bad", f"{events_topic}[9]@3", "quarantined", "body_date"),
    ]
    assert support["events"][1]["deliveries"][0]["why"].startswith("มี version ใหม่กว่าแล้ว")
    text = quiet.command("timeline", ORDER, "--support", "--lang", "en").stdout
    assert "by version: v3 #2, v4 #4, v5 #1, v6 #3" in text
    assert "A newer version was applied before, so the totals stay" in " ".join(text.split())
    assert "2026-08-21 11:02:00+07:00" in text
    assert text.startswith(f"Withdrawal {TICKET} ({ORDER})\n")


def test_effects_of_the_object_alone_with_their_keys(quiet: Operated) -> None:
    """Those that events caused, and those that happen once in its life; whether each was sent."""
    insert_the_order_half_way(quiet)
    insert_effect(quiet, ORDER, 3, "close_withdrawal", f"withdrawal:{ORDER}:close_withdrawal", "evt_gone", 9)
    insert(
        quiet,
        "pg_withdrawal_fill_reversals",
        leg_ref="leg_early",
        pg_withdrawal_id=ORDER,
        reason_code="ACCOUNT_FROZEN",
        reverses_balance_transaction_id="btxn_a",
        reversal_balance_transaction_id="btxn_b",
        reversed_at="2026-08-21T05:00:00Z",
        amount_minor=5_000,
        status_snapshot="open",
    )
    key = "withdrawal-fill:leg_early:reverse:compensate_reversed_fill"
    insert_effect(quiet, ORDER, 4, "compensate_reversed_fill", key, "evt_gone", 2)
    support = quiet.json("timeline", ORDER, "--support")["objects"][0]["support"]
    told = [(one["effect"]["dedupe_key"], one["causation_id"], one["effect"]["sent"]) for one in support["effects"]]
    assert told == [
        ("evt_5:show_progress", "evt_5", True),
        ("evt_6:show_progress", "evt_6", False),
        (f"withdrawal:{ORDER}:close_withdrawal", "evt_gone", False),
        (key, "evt_gone", False),
    ]
    text = quiet.command("timeline", ORDER, "--support").stdout
    assert "ยังไม่ส่ง" in text
    assert "leg_early" in text


def test_the_fees_of_chunks_are_checked(quiet: Operated) -> None:
    """The gateway's own agree; a satang more is named with both amounts; the page itself shows no fee."""
    insert_the_order_half_way(quiet)
    fees = quiet.json("timeline", ORDER, "--support")["objects"][0]["support"]["fees"]
    assert fees == {"differences": [], "agree": 2, "unchecked": 0}
    quiet.rows(
        "UPDATE pg_withdrawal_fills SET fee_recognized_minor = 1071 WHERE leg_ref = %s RETURNING 1", CHUNKS[1][0]
    )
    text = quiet.command("timeline", ORDER, "--support", "--lang", "en").stdout
    assert "chunk 2 (leg_7HB3ND5R): a fee of 10.71 THB was sent, 10.70 THB is computed (event evt_5)" in text
    assert "the fees of 1 of 2 chunks are the computed ones; no event is left to check 0" in text


def test_a_deposit_with_its_entries_and_the_money_that_came_of_it(quiet: Operated) -> None:
    """Balance entries with user and event, effects by the deposit's keys, the gateway's movements by their source."""
    insert_deposit(quiet, "dep_s", "ord_s", "usr_s", "open")
    insert(
        quiet,
        "pg_user_balance_entries",
        entry_key="deposit:dep_s:credit",
        user_id="usr_s",
        amount_minor=50_000,
        event_id="evt_s",
        created_at="2026-03-02T10:33:16Z",
    )
    insert(
        quiet,
        "pg_balance_txns",
        btxn_id="btxn_s",
        type="deposit_settlement",
        direction="credit",
        amount_minor=49_250,
        bucket_to="pending",
        source_id="dep_s",
        created_at="2026-03-02T10:33:15Z",
    )
    insert_effect(quiet, "dep_s", 0, "balance_entry", "deposit:dep_s:credit", "evt_s", 3)
    insert_event(quiet, "evt_s", "deposit.settled", "dep_s", 1, version=3, kind="deposit_order", parked="correlation")
    support = quiet.json("timeline", "ord_s", "--by", "order", "--support")["objects"][0]["support"]
    assert support["record"]["entries"][0]["event_id"] == "evt_s"
    assert [one["effect"]["dedupe_key"] for one in support["effects"]] == ["deposit:dep_s:credit"]
    assert [one["btxn_id"] for one in support["transactions"]] == ["btxn_s"]
    assert support["fees"] is None
    (delivery,) = support["events"][0]["deliveries"]
    assert (delivery["verdict"], delivery["reason"]) == ("parked", "correlation")
    assert "tallyhook parked" in delivery["next_step"]


def test_a_limit_bounds_the_history(quiet: Operated) -> None:
    """The first events, and how many there are."""
    insert_withdrawal(quiet, "wdr_l", 9, "open", 0, 100_000)
    for number in range(1, 10):
        insert_event(quiet, f"evt_{number}", "withdrawal.matched", "wdr_l", number, version=number)
    support = quiet.json("timeline", "wdr_l", "--support", "--limit", "4")["objects"][0]["support"]
    assert (len(support["events"]), support["events_total"]) == (4, 9)
    text = quiet.command("timeline", "wdr_l", "--support", "--limit", "4", "--lang", "en").stdout
    assert "the inbox has 9 events of it; a larger --limit shows them" in text
    quiet.rows(
        "INSERT INTO redeliveries (event_id, source_partition, source_offset, received_at, verdict)"
        " SELECT 'evt_2', 2, 100 + n, now(), 'redelivered' FROM generate_series(1, 7) n RETURNING 1"
    )
    text = quiet.command("timeline", "wdr_l", "--support", "--limit", "4", "--lang", "en").stdout
    assert "8 of 11 deliveries shown" in text


def test_explain_shows_where_a_withdrawal_stands(quiet: Operated) -> None:
    """The row of the event's object, whatever its kind; nothing where it has none."""
    insert_the_order_half_way(quiet)
    now = quiet.json("explain", "evt_3")["object_now"]
    assert (now["status"], now["pg_version"], now["our_ref"]) == ("partially_filled", 6, TICKET)
    assert (now["filled_minor"], now["amount_total_minor"], now["closed_at"]) == (70_000, 100_000, None)
    insert(
        quiet,
        "pg_balance_txns",
        btxn_id="btxn_e",
        type="deposit_settlement",
        direction="credit",
        amount_minor=803,
        created_at="2026-08-21T09:02:14Z",
    )
    insert_event(quiet, "evt_b", "balance.credited", "btxn_e", 7, verdict="immutable", kind="balance_transaction")
    assert quiet.json("explain", "evt_b")["object_now"] == {
        "type": "deposit_settlement",
        "direction": "credit",
        "amount_minor": 803,
        "bucket_from": None,
        "bucket_to": None,
        "source_id": None,
        "created_at": "2026-08-21T09:02:14Z",
    }
    assert (
        "now: type deposit_settlement, direction credit, amount_minor 803" in quiet.command("explain", "evt_b").stdout
    )
    insert_event(quiet, "evt_k", "payout.made", "btxn_e", 8, version=1, reason="no_handler", kind="payout")
    assert quiet.json("explain", "evt_k")["object_now"] is None


def test_explain_of_a_set_aside_event_finds_its_object(quiet: Operated) -> None:
    """It tells no kind, so each kind's table is asked."""
    insert_withdrawal(quiet, "wdr_q", 2, "open", 0, 100_000)
    insert_fill(quiet, "wdr_q", "leg_q", 1, 100, 1, "2026-08-21T03:00:00Z")
    quiet.set_aside([set_aside_row(quiet, "evt_q", "wdr_q", deposit_body("evt_q", "wdr_q", 4, "open"), 5)])
    assert quiet.json("explain", "evt_q")["object_now"]["status"] == "open"
