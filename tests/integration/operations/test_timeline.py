"""`tallyhook timeline`: what an end user sees of an order, read from the tables."""

from typing import Any

import pytest

from tests.integration.operations.operated import Operated, deposit_body
from tests.integration.operations.set_aside import set_aside_row
from tests.integration.operations.timeline_rows import (
    ORDER,
    TICKET,
    insert,
    insert_correlation,
    insert_deposit,
    insert_event,
    insert_fill,
    insert_the_order_half_way,
    insert_withdrawal,
)

MONEY = {
    "ordered_amount_minor": 50_000,
    "transferred_amount_minor": 50_000,
    "amount_received_minor": 50_000,
    "fee_total_minor": 750,
    "credited_amount_minor": 49_250,
}


def page(installation: Operated, *arguments: str) -> list[str]:
    """The lines that the command prints."""
    done = installation.command("timeline", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def roles(told: dict[str, Any]) -> list[str]:
    """What the lines of the first page tell."""
    return [line["role"] for line in told["objects"][0]["page"]["lines"]]


def test_the_page_is_thai_in_thai_time(quiet: Operated) -> None:
    """Without options: language, zone, layout; the newest event says who is transferring; no leg_ref anywhere."""
    insert_the_order_half_way(quiet)
    assert page(quiet, ORDER) == [
        f"ถอนเงิน {TICKET} ({ORDER})",
        "ได้รับแล้ว 700 จาก 1,000 บาท กำลังรอส่วนที่เหลือ",
        "ได้รับแล้ว 700.00 จาก 1,000.00 บาท",
        "├ 10:19  +300.00 บาท  ก้อนที่ 1",
        "├ 10:33  +400.00 บาท  ก้อนที่ 2",
        "├ มีคนกำลังโอนให้ 300 บาท",
        "└ รอส่วนที่เหลือ 300.00 บาท",
        "SMS จากธนาคารอาจมาถึงก่อนรายการในหน้านี้ เพราะต้องตรวจสลิปก่อนสักครู่",
        "วันที่ 21 สิงหาคม 2026 เวลาตามเขต Asia/Bangkok (UTC+07:00)",
    ]
    in_utc = page(quiet, ORDER, "--tz", "UTC")
    assert "├ 03:19  +300.00 บาท  ก้อนที่ 1" in in_utc
    assert "├ 03:19 +300.00 THB  chunk 1" in page(quiet, ORDER, "--tz", "UTC", "--lang", "en")


def test_json_has_a_format_and_no_leg_ref(quiet: Operated) -> None:
    """Roles, texts, moments in UTC, amounts in satang."""
    insert_the_order_half_way(quiet)
    told = quiet.json("timeline", ORDER)
    assert {name: told[name] for name in told if name != "objects"} == {
        "format": "tallyhook.timeline/1",
        "view": "end_user",
        "by": "id",
        "key": ORDER,
        "language": "th",
        "zone": "Asia/Bangkok",
        "total": 1,
    }
    assert roles(told) == ["title", "status", "received", "fill", "fill", "matched", "waiting", "note", "zone"]
    shown = told["objects"][0]["page"]
    assert (shown["object_id"], shown["kind"], shown["status"]) == (ORDER, "withdrawal_order", "partially_filled")
    assert shown["lines"][3] == {
        "role": "fill",
        "text": "10:19  +300.00 บาท  ก้อนที่ 1",
        "at": "2026-08-21T03:19:47.903000Z",
        "number": 1,
        "amount_minor": 30_000,
    }
    assert told["objects"][0]["support"] is None
    assert "leg_" not in quiet.command("timeline", ORDER, "--json").stdout


def test_a_match_that_is_no_longer_the_newest_is_not_told(quiet: Operated) -> None:
    """A late match, one that waits, and one whose event was pruned say nothing about now."""
    insert_withdrawal(quiet, "wdr_a", 7, "partially_filled", 30_000, 70_000)
    reserved = {"reserved_minor": 30_000}
    insert_event(quiet, "evt_a6", "withdrawal.matched", "wdr_a", 1, version=6, verdict="late", entity=reserved)
    assert "matched" not in roles(quiet.json("timeline", "wdr_a"))
    insert_event(quiet, "evt_a7", "withdrawal.matched", "wdr_a", 2, version=7, verdict="late", entity=reserved)
    insert_event(quiet, "evt_a8", "withdrawal.matched", "wdr_a", 3, version=7, parked="snapshot", entity=reserved)
    assert "matched" not in roles(quiet.json("timeline", "wdr_a"))
    insert_event(quiet, "evt_a9", "withdrawal.matched", "wdr_a", 4, version=7, entity=reserved)
    assert "matched" in roles(quiet.json("timeline", "wdr_a"))


def test_a_chunk_that_was_taken_back(quiet: Operated) -> None:
    """The tombstone is read with its order."""
    insert_withdrawal(quiet, "wdr_r", 9, "settled", 100_000, 0, replacement_withdrawal_id="wdr_new")
    insert_fill(quiet, "wdr_r", "leg_r", 1, 100_000, 2_675, "2026-08-21T03:19:47Z")
    quiet.rows("UPDATE pg_withdrawal_fills SET reversed_at = '2026-08-21T05:00:00Z' RETURNING 1")
    insert(
        quiet,
        "pg_withdrawal_fill_reversals",
        leg_ref="leg_r",
        pg_withdrawal_id="wdr_r",
        reason_code="BANK_RECALL",
        reverses_balance_transaction_id="btxn_leg_r",
        reversal_balance_transaction_id="btxn_back",
        reversed_at="2026-08-21T05:00:00Z",
        amount_minor=100_000,
        status_snapshot="settled",
        effect_enqueued_at="2026-08-21T05:00:01Z",
    )
    assert page(quiet, "wdr_r", "--lang", "en", "--tz", "UTC")[3:7] == [
        "├ 03:19 +1,000.00 THB  chunk 1 (taken back since)",
        "└ 05:00 -1,000.00 THB  chunk 1 was taken back",
        "What was taken back is being made good to you",
        "A new withdrawal was opened instead: wdr_new",
    ]


def test_the_page_of_an_order_shows_each_deposit_with_its_own_amounts(quiet: Operated) -> None:
    """One deposit's end does not colour the other; one that has no row yet is there too."""
    insert_deposit(quiet, "dep_old", "ord_5", "usr_1", "expired", is_terminal=True, ordered_amount_minor=50_000)
    insert_deposit(quiet, "dep_new", "ord_5", "usr_1", "settled", **MONEY)
    insert_deposit(quiet, "dep_else", "ord_6", "usr_2", "settled", **MONEY)
    insert_correlation(quiet, "dep_next", "ord_5", "usr_1")
    insert(
        quiet,
        "pg_user_balance_entries",
        entry_key="deposit:dep_new:credit",
        user_id="usr_1",
        amount_minor=50_000,
        event_id="evt_new",
        created_at="2026-03-02T10:33:16Z",
    )
    text = "\n".join(page(quiet, "ord_5", "--by", "order", "--lang", "en", "--tz", "UTC"))
    assert text.startswith("Order ord_5: 3 found\n\n")
    assert "dep_else" not in text
    old = text.split("Deposit ord_5 (dep_old)\n")[1].split("\n\n")[0]
    new = text.split("Deposit ord_5 (dep_new)\n")[1].split("\n\n")[0]
    assert old.splitlines() == ["The deposit ran out of time", "500.00 THB to be transferred", "Times in UTC"]
    assert new.splitlines() == [
        "Deposit complete, 500 THB",
        "Received 500.00 of 500.00 THB",
        "└ 10:33 +500.00 THB  credited to your account",
        "2 March 2026, times in UTC",
    ]
    assert "Order dep_next\nThe payment gateway has sent no news of it yet" in text
    by_user = quiet.json("timeline", "usr_1", "--by", "user")
    assert sorted(one["page"]["object_id"] for one in by_user["objects"]) == ["dep_new", "dep_next", "dep_old"]


def test_a_ticket_finds_its_withdrawals_and_a_limit_is_told(quiet: Operated) -> None:
    """The last changed first; what the limit leaves out is counted."""
    for number in (1, 2, 3):
        insert_withdrawal(quiet, f"wdr_{number}", 1, "open", 0, 100_000, updated_at=f"2026-08-2{number}T00:00:00Z")
    insert_withdrawal(quiet, "wdr_else", 1, "open", 0, 100_000, our_ref="WD-else")
    found = quiet.json("timeline", TICKET, "--by", "ticket", "--limit", "2")
    assert (found["total"], [one["page"]["object_id"] for one in found["objects"]]) == (3, ["wdr_3", "wdr_2"])
    assert page(quiet, TICKET, "--by", "ticket", "--limit", "2")[:2] == [
        f"เลขอ้างอิง {TICKET}: 3 รายการ",
        "แสดง 2 จาก 3",
    ]


def test_a_page_that_cannot_show_every_chunk_says_so(quiet: Operated) -> None:
    """A thousand chunks are shown; how many there are is told."""
    insert_withdrawal(quiet, "wdr_many", 1, "open", 0, 100_000)
    quiet.rows(
        "INSERT INTO pg_withdrawal_fills (leg_ref, pg_withdrawal_id, amount_minor, settled_at)"
        " SELECT 'leg_' || n, 'wdr_many', n, '2026-08-21Z'::timestamptz + n * interval '1 s'"
        " FROM generate_series(1, 1003) n RETURNING 1"
    )
    shown = page(quiet, "wdr_many", "--lang", "en")
    assert "1000 of 1003 shown" in shown
    assert sum("chunk" in line for line in shown) == 1000


def test_a_balance_transaction_is_one_line(quiet: Operated) -> None:
    """By its own id."""
    insert(
        quiet,
        "pg_balance_txns",
        btxn_id="btxn_1",
        type="withdrawal_release",
        direction="credit",
        amount_minor=803,
        bucket_to="available",
        source_id="wdr_1",
        created_at="2026-08-21T09:02:14Z",
    )
    assert page(quiet, "btxn_1")[1] == "16:02  +8.03 บาท  withdrawal_release"


def test_the_gateways_words_come_from_the_event_of_the_rows_version(quiet: Operated) -> None:
    """In the reader's language; what would move a terminal's cursor is shown as an escape."""
    insert_deposit(quiet, "dep_r", "ord_r", "usr_r", "rejected")
    told = {"display_th": "สลิปไม่ชัด \x1b[2J😿", "display_en": "slip not clear"}
    for version, arrival in ((2, 1), (3, 2)):
        entity = {"rejection": told if version == 3 else {"display_th": "เก่า"}}
        insert_event(
            quiet, f"evt_r{version}", "deposit.rejected", "dep_r", arrival, version=version, entity=entity,
            kind="deposit_order",
        )  # fmt: skip
    assert page(quiet, "dep_r")[1:3] == ["รายการฝากไม่ได้รับอนุมัติ", "เหตุผล: สลิปไม่ชัด \\x1b[2J😿"]
    assert page(quiet, "dep_r", "--lang", "en")[2] == "Reason: slip not clear"


def test_an_object_whose_events_wait_has_an_honest_page(quiet: Operated) -> None:
    """A withdrawal too sparse for a row, a deposit without its order, a kind without rules, bytes set aside."""
    insert_event(quiet, "evt_w", "withdrawal.matched", "wdr_w", 1, version=2, parked="snapshot")
    insert_event(quiet, "evt_d", "deposit.open", "dep_d", 2, version=1, parked="correlation", kind="deposit_order")
    insert_event(quiet, "evt_k", "payout.made", "po_k", 3, version=1, reason="no_handler", kind="payout")
    quiet.set_aside([set_aside_row(quiet, "evt_q", "dep_q", deposit_body("evt_q", "dep_q", 1, "open"), 4)])
    said = {
        "wdr_w": "News of this withdrawal has come, but not yet enough of it to show",
        "dep_d": "News of this deposit has come; it is being matched with its order",
        "po_k": "News of this order has come, but there are no details to show",
        "dep_q": "What came of this order is being checked",
    }
    for object_id, sentence in said.items():
        assert page(quiet, object_id, "--lang", "en") == [f"Order {object_id}", sentence, "Times in Asia/Bangkok"]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("wdr_nowhere",), "`tallyhook explain` takes an event's id"),
        (("ord_nowhere", "--by", "order"), "pg_deposit_correlations has the order"),
        (("usr_nowhere", "--by", "user"), "pg_deposit_correlations has the user"),
        (("WD-nowhere", "--by", "ticket"), "merchant_reference or the ticket"),
        (("wdr_\x1bnowhere", "--json"), "wdr_\\x1bnowhere is in no store"),
    ],
)
def test_an_unknown_key_says_what_to_check(quiet: Operated, arguments: tuple[str, ...], hint: str) -> None:
    """Exit code 1, nothing on standard output."""
    done = quiet.command("timeline", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert hint in done.stderr


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("wdr_1", "--tz", "Bangkok"), "did you mean Asia/Bangkok"),
        (("wdr_1", "--tz", "+07:00"), "such as Asia/Bangkok or UTC"),
        (("",), "give the id of an object"),
        (("wdr_1", "--limit", "0"), "--limit"),
    ],
)
def test_wrong_usage(quiet: Operated, arguments: tuple[str, ...], hint: str) -> None:
    """Exit code 2 with a hint, before anything is read."""
    done = quiet.command("timeline", *arguments, TALLYHOOK_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert done.returncode == 2, done.stdout
    assert hint in done.stderr
