"""The page of a withdrawal, line by line, in the words and the layout that the gateway asks for."""

from dataclasses import replace

import pytest

from tallyhook.operations.timeline.catalogue import Language, catalogue
from tallyhook.operations.timeline.clock_words import zone
from tallyhook.operations.timeline.page import Page
from tallyhook.operations.timeline.records import Newest, Waiting, Withdrawal
from tallyhook.operations.timeline.withdrawal_page import withdrawal_page
from tests.unit.timeline.samples import (
    FILLS,
    TICKET,
    WITHDRAWAL,
    at,
    half_filled_and_expired,
    matched,
    reversal,
    row,
    withdrawal,
)

BANK_FIRST = "SMS จากธนาคารอาจมาถึงก่อนรายการในหน้านี้ เพราะต้องตรวจสลิปก่อนสักครู่"


def page(found: Withdrawal, language: Language = "th", place: str = "UTC") -> Page:
    """The page in UTC, as the gateway's own examples are."""
    return withdrawal_page(found, catalogue(language), zone(place))


def lines(found: Withdrawal, language: Language = "th", place: str = "UTC") -> list[str]:
    """The printed lines without the title."""
    title, *rest = page(found, language, place).texts()
    assert TICKET in title
    assert WITHDRAWAL in title
    return rest


def test_two_of_three_chunks_in_thai() -> None:
    """Received so far of the total, a line a chunk with its time and amount, and what is still awaited."""
    found = withdrawal(row(5, "partially_filled", 70_000, 30_000, settled_splits=2), *FILLS[:2])
    assert lines(found) == [
        "ได้รับแล้ว 700 จาก 1,000 บาท กำลังรอส่วนที่เหลือ",
        "ได้รับแล้ว 700.00 จาก 1,000.00 บาท",
        "├ 03:19  +300.00 บาท  ก้อนที่ 1",
        "├ 03:33  +400.00 บาท  ก้อนที่ 2",
        "└ รอส่วนที่เหลือ 300.00 บาท",
        BANK_FIRST,
        "วันที่ 21 สิงหาคม 2026 เวลาตามเขต UTC",
    ]


def test_two_of_three_chunks_in_english_and_thai_time() -> None:
    """The same in the other language, seven hours later on the clock."""
    found = withdrawal(row(5, "partially_filled", 70_000, 30_000), *FILLS[:2])
    assert lines(found, "en", "Asia/Bangkok") == [
        "700 of 1,000 THB received, waiting for the rest",
        "Received 700.00 of 1,000.00 THB",
        "├ 10:19 +300.00 THB  chunk 1",
        "├ 10:33 +400.00 THB  chunk 2",
        "└ waiting for the remaining 300.00 THB",
        "Your bank's SMS may come before a line appears here, because the slip is checked first",
        "21 August 2026, times in Asia/Bangkok (UTC+07:00)",
    ]


STATUSES: list[tuple[Withdrawal, str, str]] = [
    (
        withdrawal(row(1, "pending_approval", 0, 100_000)),
        "คำขอถอนอยู่ระหว่างอนุมัติ",
        "Your withdrawal request is awaiting approval",
    ),
    (withdrawal(row(1, "open", 0, 100_000)), "กำลังจัดหาผู้โอน", "Finding someone to transfer to you"),
    (
        withdrawal(row(3, "partially_filled", 30_050, 70_000)),
        "ได้รับแล้ว 300.50 จาก 1,000 บาท กำลังรอส่วนที่เหลือ",
        "300.50 of 1,000 THB received, waiting for the rest",
    ),
    (withdrawal(row(8, "settled", 100_000, 0)), "ถอนสำเร็จ 1,000 บาท", "Withdrawal complete, 1,000 THB"),
    (
        half_filled_and_expired(),
        "ส่วนที่เหลือ 300 บาท ถูกคืนเข้าบัญชีของคุณแล้ว",
        "The remaining 300 THB has been returned to your account",
    ),
    (
        withdrawal(row(9, "canceled", 0, 100_000)),
        "ยกเลิกรายการถอนแล้ว ยอดที่เหลือถูกคืนแล้ว",
        "Withdrawal canceled, the remaining balance has been returned",
    ),
    (withdrawal(row(2, "rejected", 0, 100_000)), "คำขอถอนไม่ได้รับอนุมัติ", "The withdrawal request was not approved"),
    (withdrawal(row(2, "on_hold", 0, 100_000)), "สถานะของรายการถอน: on_hold", "State of the withdrawal: on_hold"),
]


@pytest.mark.parametrize(("found", "thai", "english"), STATUSES, ids=[found.row.status for found, _, _ in STATUSES])
def test_status_texts(found: Withdrawal, thai: str, english: str) -> None:
    """Word for word the gateway's; a status that is not known here is told as it is."""
    assert (lines(found)[0], lines(found, "en")[0]) == (thai, english)


def test_the_whole_life_of_an_order() -> None:
    """Version by version: what falls on a match is not what is awaited, and the last chunk already says settled."""
    told = {
        version: lines(withdrawal(row(version, status, filled, remaining), *FILLS[:chunks], newest=newest))
        for version, status, filled, remaining, chunks, newest in (
            (1, "open", 0, 100_000, 0, None),
            (2, "open", 0, 70_000, 0, matched(30_000)),
            (3, "partially_filled", 30_000, 70_000, 1, None),
            (4, "partially_filled", 30_000, 30_000, 1, matched(40_000)),
            (7, "settled", 100_000, 0, 3, None),
        )
    }
    waiting = {version: [line for line in text if "รอส่วนที่เหลือ" in line][-1:] for version, text in told.items()}
    assert waiting == {
        1: ["└ รอส่วนที่เหลือ 1,000.00 บาท"],
        2: ["└ รอส่วนที่เหลือ 1,000.00 บาท"],
        3: ["└ รอส่วนที่เหลือ 700.00 บาท"],
        4: ["└ รอส่วนที่เหลือ 700.00 บาท"],
        7: [],
    }
    assert "├ มีคนกำลังโอนให้ 300 บาท" in told[2]
    assert "├ มีคนกำลังโอนให้ 400 บาท" in told[4]
    assert told[7] == [
        "ถอนสำเร็จ 1,000 บาท",
        "ได้รับแล้ว 1,000.00 จาก 1,000.00 บาท",
        "├ 03:19  +300.00 บาท  ก้อนที่ 1",
        "├ 03:33  +400.00 บาท  ก้อนที่ 2",
        "└ 03:52  +300.00 บาท  ก้อนที่ 3",
        "วันที่ 21 สิงหาคม 2026 เวลาตามเขต UTC",
    ]


@pytest.mark.parametrize(
    "newest",
    [
        matched(30_000, "withdrawal.filled"),
        matched(0),
        matched(-1),
        matched(None),
        matched("300"),
        matched(True),
        Newest("withdrawal.matched", '{"data": {"object": '),
        None,
    ],
)
def test_a_match_is_told_only_from_the_newest_event(newest: Newest | None) -> None:
    """Another newest event, or a reserve that is no amount, means that nobody is known to be transferring."""
    text = "\n".join(lines(withdrawal(row(4, "partially_filled", 30_000, 30_000), *FILLS[:1], newest=newest), "en"))
    assert "transferring" not in text
    assert "waiting for the remaining 700.00 THB" in text


def test_a_match_after_the_end_is_not_told() -> None:
    """Nobody transfers to an order that has ended."""
    for status in ("settled", "expired", "canceled", "rejected"):
        found = withdrawal(row(9, status, 0, 0), newest=matched(30_000))
        assert "transferring" not in "\n".join(lines(found, "en"))


def test_expired_half_filled() -> None:
    """What was paid out stays visible; the principal and the unused fee came back as 308.03."""
    assert lines(half_filled_and_expired()) == [
        "ส่วนที่เหลือ 300 บาท ถูกคืนเข้าบัญชีของคุณแล้ว",
        "ได้รับแล้ว 700.00 จาก 1,000.00 บาท",
        "├ 03:19  +300.00 บาท  ก้อนที่ 1",
        "└ 03:33  +400.00 บาท  ก้อนที่ 2",
        "คืนเข้าบัญชีของคุณ 308.03 บาท (ส่วนที่ยังไม่ได้โอน 300.00 บาท และค่าธรรมเนียมที่ไม่ได้ใช้ 8.03 บาท)",
        "วันที่ 21 สิงหาคม 2026 เวลาตามเขต UTC",
    ]


def test_what_came_back_is_never_guessed() -> None:
    """Without the fee only the principal is told; without the principal nothing is; a lock only once released."""
    ended = half_filled_and_expired().row
    no_fee = lines(withdrawal(replace(ended, fee_recognized_minor=None)), "en")
    assert "300.00 THB returned to your account (not transferred)" in no_fee
    nothing = lines(withdrawal(replace(ended, refunded_minor=None)), "en")
    assert nothing[0] == "The withdrawal ran out of time; what is returned is being checked"
    assert "returned to your account" not in "\n".join(nothing)
    not_yet = lines(withdrawal(replace(ended, status="canceled", refund_enqueued_at=None)), "en")
    assert "returned to your account" not in "\n".join(not_yet)
    rejected = row(2, "rejected", 0, 100_000)
    assert lines(withdrawal(rejected), "en")[1:] == ["Times in UTC"]
    released = replace(rejected, user_lock_released_at=at("2026-08-21T04:00:00Z"))
    assert lines(withdrawal(released), "en")[1] == "The 1,026.75 THB held for this request are unlocked"


def test_chunks_stand_in_true_order_whatever_order_they_came_in() -> None:
    """Numbered by time; one without a moment comes last, and none is numbered twice."""
    unknown = replace(FILLS[0], leg_ref="leg_x", settled_at=None, sequence=9, amount_minor=1)
    found = withdrawal(row(7, "settled", 100_000, 0), FILLS[2], unknown, FILLS[0], FILLS[1])
    told = [(line.number, line.amount_minor) for line in page(found).lines if line.role == "fill"]
    assert told == [(1, 30_000), (2, 40_000), (3, 30_000), (4, 1)]
    assert "└ ไม่ทราบเวลา  +0.01 บาท  ก้อนที่ 4" in lines(found)
    first, second = replace(FILLS[0], sequence=2), replace(FILLS[1], sequence=1)
    by_time = page(withdrawal(row(7, "partially_filled", 70_000, 30_000), second, first)).lines
    assert [line.amount_minor for line in by_time if line.role == "fill"] == [30_000, 40_000]
    assert [line.number for line in by_time if line.role == "fill"] == [1, 2]


def test_a_chunk_that_was_taken_back() -> None:
    """It stays in its place and says so; what went back has a line of its own, on its own day; the total stands."""
    back = replace(FILLS[0], reversed_at=at("2026-08-22T20:10:00Z"))
    found = withdrawal(
        row(9, "settled", 100_000, 0, replacement_withdrawal_id="wdr_new"),
        back,
        *FILLS[1:],
        reversals=(reversal(back, "2026-08-22T20:10:00Z"),),
    )
    assert lines(found, "th", "Asia/Bangkok") == [
        "ถอนสำเร็จ 1,000 บาท",
        "ได้รับแล้ว 1,000.00 จาก 1,000.00 บาท",
        "├ 10:19  +300.00 บาท  ก้อนที่ 1 (ถูกกลับรายการแล้ว)",
        "├ 10:33  +400.00 บาท  ก้อนที่ 2",
        "├ 10:52  +300.00 บาท  ก้อนที่ 3",
        "└ 23 ส.ค. 2026 03:10  -300.00 บาท  กลับรายการก้อนที่ 1",
        "ยอดที่ถูกกลับรายการอยู่ระหว่างการชดเชยให้คุณ",
        "เปิดรายการถอนใหม่แทนแล้ว: wdr_new",
        "วันที่ 21 สิงหาคม 2026 เวลาตามเขต Asia/Bangkok (UTC+07:00)",
    ]


def test_a_reversal_that_came_before_its_chunk() -> None:
    """It is told without a number."""
    found = withdrawal(
        row(4, "partially_filled", 30_000, 70_000), reversals=(reversal(FILLS[0], "2026-08-21T05:00:00Z"),)
    )
    told = "├ 05:00 -300.00 THB  was taken back (details of this chunk are still to come)"
    assert told in lines(found, "en")


def test_chunks_whose_events_are_still_on_their_way() -> None:
    """The order counts more chunks than have arrived: said so, and no sum is made of those that have."""
    found = withdrawal(row(5, "partially_filled", 70_000, 30_000, settled_splits=2), FILLS[1])
    assert lines(found)[1:4] == [
        "ได้รับแล้ว 700.00 จาก 1,000.00 บาท",
        "├ 03:33  +400.00 บาท  ก้อนที่ 1",
        "├ อีก 1 ก้อนกำลังรอรายละเอียด",
    ]


def test_a_remainder_that_was_absorbed_is_no_missing_chunk() -> None:
    """The chunks add up to less than the order received; nothing is awaited."""
    short = replace(FILLS[2], amount_minor=29_999)
    found = withdrawal(row(8, "settled", 100_000, 0, settled_splits=3), *FILLS[:2], short)
    assert lines(found)[1] == "ได้รับแล้ว 1,000.00 จาก 1,000.00 บาท"
    assert not [line for line in page(found).lines if line.role in ("waiting", "note")]


def test_settled_with_a_rest_is_not_called_complete() -> None:
    """The gateway says settled and a remainder in one event: the page claims neither."""
    text = lines(withdrawal(row(8, "settled", 70_000, 30_000)), "en")[0]
    assert text == "700 of 1,000 THB received, the rest is being checked"


def test_an_order_whose_reference_is_not_known_yet_goes_by_its_id() -> None:
    """And events that wait are told."""
    found = withdrawal(row(1, "open", 0, 100_000, our_ref=None), waiting=Waiting(("withdrawal_order",), 2))
    texts = list(page(found, "en").texts())
    assert texts[0] == f"Withdrawal {WITHDRAWAL}"
    assert "2 pieces of news wait to be worked on" in texts


def test_what_a_limit_leaves_out_is_counted() -> None:
    """No page looks whole that is not."""
    found = withdrawal(row(8, "settled", 100_000, 0), *FILLS[:2], fills_total=3)
    assert "2 of 3 shown" in lines(found, "en")
