"""The lives of a deposit: its snapshots from first to last, as `data.object` without id, kind and version."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]
Claim = Json

LIVES = (
    ("open", "settled", "reversed"),
    ("settled", "settled", "reversed", "settled", "reversed"),
    ("open", "slip_received", "settled"),
    ("open", "slip_received", "settled", "reversed"),
    ("open", "slip_received", "under_review", "settled"),
    ("open", "slip_received", "under_review", "rejected"),
    ("open", "expired", "slip_received", "settled"),
    ("open", "settled", "frozen_by_bank"),
    ("open", "expired"),
    ("open", "canceled"),
    ("reversed", "settled"),
)
STATUSES = (
    "open",
    "slip_received",
    "under_review",
    "settled",
    "reversed",
    "expired",
    "canceled",
    "rejected",
    "frozen_by_bank",
    "ค้าง",
)
CHANGES = st.sampled_from((False, True, True))
ABSENT = object()
DATES = ("2026-03-02T03:33:15Z", "2026-03-02T10:33:15.25+07:00", "2026-12-31T23:59:59.999999-11:30")
BREAKDOWNS: tuple[object, ...] = (
    ABSENT,
    None,
    {},
    [],
    {"rate": 0.015, "parts": [{"name": "ค่าธรรมเนียม", "minor": 75}]},
    "free",
    0,
    False,
)
REVIEWS: tuple[object, ...] = (
    ABSENT,
    None,
    {},
    [],
    {"reasons": []},
    {"reasons": "no list"},
    {"reasons": [{"display_th": "สลิปไม่ชัด 😿 é", "display_en": "The slip is blurred"}, {"display_th": "อื่น ๆ"}]},
    {"reasons": [{"display_en": "Only English"}]},
    {"reasons": [{"display_th": 5}]},
    {"reasons": [None]},
)
REJECTIONS: tuple[object, ...] = (
    ABSENT,
    None,
    {},
    "no",
    {"display_th": "ชื่อไม่ตรง", "display_en": "Names differ"},
    {"display_th": None},
)


CODES = (ABSENT, None, "by_user", "")
COMMON_MEMBERS: tuple[tuple[str, Sequence[object]], ...] = (
    ("is_terminal", (ABSENT, True, False, None)),
    ("fee_breakdown", BREAKDOWNS),
    ("balance_transaction_id", (ABSENT, None, "btxn_1")),
    ("clearing_available_at", (ABSENT, None, *DATES)),
    ("metadata", (ABSENT, {"order_id": "not ours", "user_id": "not ours"}, [], None)),
)
AMOUNTS = st.tuples(
    st.sampled_from((500_000, 1, 12_345)), st.sampled_from((0, -5_000, 10_000)), st.sampled_from((0, 1, 50, 100))
)
"""Ordered, how much more or less was transferred (satang), and the fee in hundredths of what was received."""


def claims() -> st.SearchStrategy[list[Claim]]:
    """One to three claims that the deposits of a world share, so that they also meet each other's."""
    return st.lists(
        st.fixed_dictionaries(
            {
                "claim_id": st.sampled_from(("clm_1", "clm_2", "เรื่อง-3")),
                "cause": st.sampled_from(("same_transfer_excess", "additional_transfer")),
                "amount_minor": st.sampled_from((1, 10_000, 2**62)),
                "slip_received_at": st.sampled_from(("2026-03-01T03:33:10Z", "2026-03-01T10:33:10+07:00")),
                "status": st.just("open"),
                "action_required": st.just("contact_support"),
            },
            optional={
                "expected_response_at": st.sampled_from((None, *DATES)),
                "note_th": st.sampled_from(("โอนเกิน", None, 1.5)),
            },
        ),
        min_size=1,
        max_size=3,
    )


@st.composite
def _money(draw: st.DrawFn) -> Json:
    """Five amounts that keep the money rule: exact, partial or overpaid, with any fee."""
    ordered, surplus, share = draw(AMOUNTS)
    transferred = max(1, ordered + surplus)
    received = min(ordered, transferred)
    fee = received * share // 100
    return {
        "ordered_amount_minor": ordered,
        "transferred_amount_minor": transferred,
        "amount_received_minor": received,
        "fee_total_minor": fee,
        "credited_amount_minor": received - fee,
    }


def _members(*special: tuple[str, Sequence[object]]) -> st.SearchStrategy[Json]:
    """What a snapshot has beside status and amounts; absent members are left out."""
    choices = (*COMMON_MEMBERS, *special)
    return st.fixed_dictionaries({name: st.sampled_from(values) for name, values in choices}).map(
        lambda members: {name: value for name, value in members.items() if value is not ABSENT}
    )


ENDED = _members(("late_slip_accepted_until", (ABSENT, None, *DATES)), ("cancel_reason_code", CODES))
PAID = _members(("partial", (ABSENT, True, False, "true", 1, None)))
MEMBERS = {
    "settled": PAID,
    "reversed": PAID,
    "expired": ENDED,
    "canceled": ENDED,
    "under_review": _members(("review", REVIEWS)),
    "rejected": _members(("rejection", REJECTIONS)),
}
OTHER_MEMBERS = _members()
MONEY = _money()
ANY_STATUSES = st.lists(st.sampled_from(STATUSES), min_size=1, max_size=6).map(tuple)
STATUSES_OF_A_LIFE = st.one_of(st.sampled_from(LIVES), ANY_STATUSES)


@st.composite
def snapshots(draw: st.DrawFn, pool: Sequence[Claim]) -> list[Json]:
    """The snapshots of one deposit, oldest first: a life of the contract, or statuses in any order."""
    flags = st.sampled_from((None, *pool, *pool))
    money, flag = draw(MONEY), draw(flags)
    told = []
    for status in draw(STATUSES_OF_A_LIFE):
        # A snapshot may tell another amount than the one before: the debit must not follow it.
        money = draw(MONEY) if draw(CHANGES) else money
        flag = draw(flags) if draw(CHANGES) else flag
        snapshot = {"status": status, **draw(MEMBERS.get(status, OTHER_MEMBERS))}
        if status in ("settled", "reversed") or draw(CHANGES):
            snapshot |= money
        if flag is not None:
            snapshot["overpayment"] = dict(sorted(flag.items(), reverse=draw(CHANGES)))
        told.append(snapshot)
    return told
