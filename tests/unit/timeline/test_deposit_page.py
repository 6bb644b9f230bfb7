"""The page of a deposit."""

import json

import pytest

from tallyhook.operations.timeline.catalogue import Language, catalogue
from tallyhook.operations.timeline.clock_words import zone
from tallyhook.operations.timeline.deposit_page import deposit_page
from tallyhook.operations.timeline.records import Deposit, Newest, Waiting
from tests.unit.timeline.samples import at, deposit, entry, flag, told


def lines(found: Deposit, language: Language = "th", place: str = "UTC") -> list[str]:
    """The printed lines without the title."""
    title, *rest = deposit_page(found, catalogue(language), zone(place)).texts()
    assert "ord_5 (dep_new)" in title
    return rest


def test_a_deposit_that_was_paid_too_much() -> None:
    """What was received of what was ordered, the credit, and whom to ask about the rest."""
    found = deposit(
        "settled",
        amount_received_minor=50_000,
        transferred_amount_minor=60_000,
        entries=(entry(50_000, "2026-03-02T10:33:16Z"),),
        flags=(flag(10_000, "2026-03-02T10:31:00Z"),),
    )
    assert lines(found) == [
        "ฝากสำเร็จ 500 บาท",
        "ได้รับแล้ว 500.00 จาก 500.00 บาท",
        "├ 10:31  โอนเกินมา 100.00 บาท กรุณาติดต่อฝ่ายบริการลูกค้า",
        "└ 10:33  +500.00 บาท  เข้าบัญชีของคุณแล้ว",
        "วันที่ 2 มีนาคม 2026 เวลาตามเขต UTC",
    ]


def test_a_deposit_that_was_taken_back() -> None:
    """Credit and debit, each with its moment."""
    found = deposit(
        "reversed",
        amount_received_minor=25_000,
        entries=(entry(25_000, "2026-03-02T09:38:02Z"), entry(-25_000, "2026-03-03T09:41:20Z")),
    )
    assert lines(found, "en") == [
        "The deposit was taken back",
        "Received 250.00 of 500.00 THB",
        "├ 09:38 +250.00 THB  credited to your account",
        "└ 3 Mar 2026 09:41 -250.00 THB  taken back from your account",
        "2 March 2026, times in UTC",
    ]


@pytest.mark.parametrize("status", ["expired", "canceled"])
def test_a_late_slip_is_still_accepted(status: str) -> None:
    """Only where the gateway says that the order is not over; then until when, in the reader's time."""
    until = at("2026-12-31T17:30:00Z")
    found = deposit(status, is_terminal=False, late_slip_accepted_until=until)
    told_lines = lines(found, "th", "Asia/Bangkok")
    assert told_lines[2:] == ["ส่งสลิปได้ถึง 00:30", "วันที่ 1 มกราคม 2027 เวลาตามเขต Asia/Bangkok (UTC+07:00)"]
    assert "ยังส่งสลิปได้" in told_lines[0]
    for over in (
        deposit(status, is_terminal=True, late_slip_accepted_until=until),
        deposit(status, is_terminal=None, late_slip_accepted_until=until),
        deposit(status, is_terminal=False),
        deposit("slip_received", is_terminal=False, late_slip_accepted_until=until),
    ):
        assert "ส่งสลิปได้" not in "\n".join(lines(over))


def test_the_gateways_own_words_are_shown_in_the_readers_language() -> None:
    """Every reason of a review, the text of a rejection; the other language where only that was sent."""
    reasons = [{"display_th": "สลิปไม่ชัด 😿 é", "display_en": "slip not clear"}, {"display_th": "ยอดไม่ตรง"}, 7]
    review = deposit("under_review", newest=told("review", {"reasons": reasons}))
    assert lines(review)[1:3] == ["เหตุผล: สลิปไม่ชัด 😿 é", "เหตุผล: ยอดไม่ตรง"]
    assert lines(review, "en")[1:3] == ["Reason: slip not clear", "Reason: ยอดไม่ตรง"]
    rejected = deposit("rejected", newest=told("rejection", {"display_th": "ชื่อไม่ตรง", "display_en": "name differs"}))
    assert lines(rejected)[:2] == ["รายการฝากไม่ได้รับอนุมัติ", "เหตุผล: ชื่อไม่ตรง"]
    assert lines(rejected, "en")[:2] == ["The deposit was not approved", "Reason: name differs"]


@pytest.mark.parametrize(
    "newest",
    [
        None,
        told("review", {"reasons": []}),
        told("review", {}),
        told("review", [1]),
        told("review", None),
        told("review", {"reasons": [{"display_th": ""}]}),
        Newest("deposit.under_review", json.dumps({"data": {"object": {"review": 1}}}).replace("1", "[" * 60_000)),
    ],
)
def test_a_review_without_words_is_no_error(newest: Newest | None) -> None:
    """Whatever stands in the place of a reason, the page tells the status."""
    assert lines(deposit("under_review", newest=newest), "en")[:2] == [
        "The deposit is under further review",
        "500.00 THB to be transferred",
    ]


def test_other_statuses() -> None:
    """Known ones in words, others as they are; while a slip is checked the bank may be quicker than the page."""
    assert lines(deposit("slip_received"), "en") == [
        "Slip received, checking it",
        "500.00 THB to be transferred",
        "Your bank's SMS may come before a line appears here, because the slip is checked first",
        "Times in UTC",
    ]
    assert lines(deposit("held"), "en")[0] == "State of the deposit: held"
    assert lines(deposit("other"), "en")[0] == "State of the deposit: other"
    waits = deposit("open", ordered_amount_minor=None, waiting=Waiting(("deposit_order",), parked=1))
    assert lines(waits)[0] == "รอการโอนเงิน"
    assert "มีข้อมูลใหม่ 1 รายการที่กำลังรอดำเนินการ" in lines(waits)
