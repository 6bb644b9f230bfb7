"""Pages of every sort of record, and what holds for all of them."""

from dataclasses import asdict, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallyhook.operations.timeline.catalogue import LANGUAGES, Language, catalogue
from tallyhook.operations.timeline.clock_words import zone
from tallyhook.operations.timeline.page import Line, Page, Role
from tallyhook.operations.timeline.pages import page_of
from tallyhook.operations.timeline.records import (
    FillRow,
    ReversalRow,
    Transaction,
    TransactionRow,
    Unfinished,
    Waiting,
    Withdrawal,
)
from tests.unit.timeline.samples import at, matched, row

MOVEMENT = TransactionRow(
    "btxn_1", "withdrawal_release", "credit", 803, None, "available", "wdr_1", at("2026-08-21T09:02:14Z")
)


@pytest.mark.parametrize(
    ("movement", "line"),
    [
        (MOVEMENT, "09:02  +8.03 บาท  withdrawal_release"),
        (replace(MOVEMENT, direction="debit", bucket_to=None), "09:02  -8.03 บาท  withdrawal_release"),
        (
            replace(MOVEMENT, type="cleared", direction="transfer", bucket_from="pending"),
            "09:02  8.03 บาท  cleared (pending → available)",
        ),
        (replace(MOVEMENT, direction="sideways"), "09:02  8.03 บาท  withdrawal_release"),
    ],
)
def test_a_balance_transaction_is_one_line(movement: TransactionRow, line: str) -> None:
    """More, less, or moved between buckets, which is neither."""
    texts = list(page_of(Transaction(movement), catalogue("th"), zone("UTC")).texts())
    assert texts == ["รายการเดินบัญชี btxn_1", line, "มาจาก wdr_1", "วันที่ 21 สิงหาคม 2026 เวลาตามเขต UTC"]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Unfinished("x", Waiting(("withdrawal_order",), parked=1)), "News of this withdrawal has come, but not yet"),
        (Unfinished("x", Waiting(("deposit_order",), parked=1)), "it is being matched with its order"),
        (Unfinished("x", Waiting(("deposit_order",), set_aside=1)), "What came of this order is being checked"),
        (Unfinished("x", Waiting((), set_aside=1)), "What came of this order is being checked"),
        (Unfinished("x", Waiting(("payout",))), "there are no details to show"),
        (Unfinished("x", Waiting(), announced=True), "The payment gateway has sent no news of it yet"),
    ],
)
def test_an_object_without_a_row_says_why(found: Unfinished, said: str) -> None:
    """No page is empty, and none pretends to know more than there is."""
    title, status, place = page_of(found, catalogue("en"), zone("UTC")).texts()
    assert (title, place) == ("Order x", "Times in UTC")
    assert said in status


def test_branches_end_where_the_tree_does() -> None:
    """The last branch of each run of branches is closed."""
    roles: tuple[Role, ...] = ("title", "fill", "fill", "note", "waiting")
    made = Page("x", "k", None, "en", "UTC", tuple(Line(role, role) for role in roles))
    assert list(made.texts()) == ["title", "├ fill", "└ fill", "note", "└ waiting"]


MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001
AMOUNTS = st.integers(-(1 << 63), (1 << 63) - 1)
UNKNOWN = st.none()
LEGS = [f"leg_SECRET_{number}" for number in range(5)]


@st.composite
def withdrawals(draw: st.DrawFn) -> Withdrawal:
    """Any row that the tables allow, with chunks and reversals in any order."""
    made = row(
        draw(st.integers(0, (1 << 63) - 1)),
        draw(
            st.sampled_from(
                [
                    "pending_approval",
                    "open",
                    "partially_filled",
                    "settled",
                    "expired",
                    "canceled",
                    "rejected",
                    "new {x}",
                ]
            )
        ),
        draw(AMOUNTS),
        draw(AMOUNTS),
        amount_total_minor=draw(AMOUNTS),
        fee_total_minor=draw(AMOUNTS | UNKNOWN),
        refunded_minor=draw(AMOUNTS | UNKNOWN),
        fee_recognized_minor=draw(AMOUNTS | UNKNOWN),
        settled_splits=draw(st.integers(-(1 << 15), (1 << 15) - 1) | UNKNOWN),
        our_ref=draw(st.none() | st.just("{ref}")),
        refund_enqueued_at=draw(MOMENTS | UNKNOWN),
        user_lock_released_at=draw(MOMENTS | UNKNOWN),
    )
    fills = [
        FillRow(leg, draw(st.integers(0, 9) | UNKNOWN), draw(AMOUNTS), None, draw(MOMENTS | UNKNOWN), None, None, back)
        for leg in draw(st.lists(st.sampled_from(LEGS), unique=True))
        for back in [draw(MOMENTS | UNKNOWN)]
    ]
    reversals = [
        ReversalRow(leg, "BANK_RECALL", draw(AMOUNTS), draw(MOMENTS), "settled", f"a{leg}", f"b{leg}", None, None)
        for leg in draw(st.lists(st.sampled_from(LEGS), unique=True))
    ]
    newest = matched(draw(AMOUNTS)) if draw(st.booleans()) else None
    return Withdrawal(made, tuple(fills), tuple(reversals), len(fills), len(reversals), newest)


@given(withdrawals(), st.sampled_from(LANGUAGES), st.sampled_from(["Asia/Bangkok", "UTC", "Europe/Berlin"]))
def test_every_withdrawal_has_a_page(found: Withdrawal, language: Language, place: str) -> None:
    """The zone is named once, each chunk and each reversal has one line, and no leg_ref is anywhere in the page."""
    made = page_of(found, catalogue(language), zone(place))
    assert "leg_SECRET" not in str(asdict(made))
    roles = [line.role for line in made.lines]
    assert roles.count("fill") == len(found.fills)
    assert roles.count("reversal") == len(found.reversals)
    assert roles[0] == "title"
    assert roles[-1] == "zone"
    assert sum(place in text for text in made.texts()) == 1 or place == "UTC"  # offsets are told as UTC+01:00
    numbers = sorted(line.number for line in made.lines if line.role == "fill" and line.number is not None)
    assert numbers == list(range(1, len(found.fills) + 1))


@given(withdrawals())
def test_chunks_run_forward_in_time(found: Withdrawal) -> None:
    """Whatever order they came in; those without a moment stand behind."""
    told = [line.at for line in page_of(found, catalogue("th"), zone("UTC")).lines if line.role in ("fill", "reversal")]
    known = [moment for moment in told if moment is not None]
    assert known == sorted(known)
    assert told[: len(known)] == known
