"""The lives of a withdrawal: its events from first to last, whole and sparse, with chunks that come and go."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tests.conformance.events import Told
from tests.conformance.legs import Leg, own_legs, reversal_of, told_fill

Json = dict[str, Any]

EIGHT = (
    *(("created", "open"), ("matched", "open"), ("filled", "partially_filled"), ("matched", "partially_filled")),
    *(("filled", "partially_filled"), ("matched", "partially_filled"), ("filled", "settled"), ("settled", "settled")),
)
LIVES: tuple[tuple[tuple[str, str], ...], ...] = (
    (("created", "open"), ("filled", "partially_filled"), ("filled", "settled"), ("settled", "settled")),
    (("created", "open"), ("filled", "partially_filled"), ("filled", "partially_filled"), ("expired", "expired")),
    (("matched", "open"), ("filled", "settled"), ("settled", "settled"), ("fill_reversed", "settled")),
    (("filled", "settled"), ("fill_reversed", "settled"), ("settled", "settled"), ("fill_reversed", "settled")),
    (
        ("filled", "partially_filled"),
        ("fill_reversed", "partially_filled"),
        ("filled", "settled"),
        ("settled", "settled"),
    ),
    (("settled", "settled"), ("fill_reversed", "open"), ("filled", "settled"), ("settled", "settled")),
    (("filled", "partially_filled"), ("fill_reversed", "expired"), ("expired", "expired")),
    (("filled", "partially_filled"), ("fill_reversed", "canceled"), ("fill_reversed", "rejected")),
    (("matched", "open"), ("matched", "open"), ("fill_reversed", "open"), ("created", "open"), ("filled", "settled")),
    (("created", "settled"), ("fill_reversed", "settled"), ("settled", "settled")),
    (("fill_reversed", "settled"), ("settled", "settled"), ("filled", "settled"), ("settled", "settled")),
    (("matched", "open"), ("matched", "partially_filled"), ("matched", "settled"), ("created", "open")),
    (("created", "pending_approval"), ("rejected", "rejected"), ("rejected", "rejected")),
    (("fill_reversed", "rejected"), ("fill_reversed", "rejected"), ("fill_reversed", "expired")),
    (("created", "open"), ("canceled", "canceled"), ("expired", "expired")),
    EIGHT,
)
KINDS = (
    *("created", "filled", "matched", "fill_reversed", "settled", "expired", "canceled", "rejected"),
    "held_by_bank",
)
STATUSES = (
    *("open", "partially_filled", "settled", "expired", "canceled", "rejected", "pending_approval"),
    *("held_by_bank", "พัก"),
)
ANY_STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(STATUSES)), min_size=1, max_size=6)
STEPS = st.one_of(st.sampled_from(LIVES), st.sampled_from(LIVES), ANY_STEPS)
ORDERS = st.tuples(
    st.sampled_from((100_000, 1, 2**62, 2**63 - 1)),
    st.sampled_from((2_675, 0, None, 2**62)),
    st.sampled_from((102_675, None)),
    st.sampled_from((4, None, 32_767)),
)
"""amount_total, fee_total, total_locked and max_splits: what is set once."""
SHAPES = st.sampled_from(("whole", "whole", "whole", "whole", "holes", "sparse", "bare"))
SHAPES_OF_MATCHED = st.sampled_from(("sparse", "sparse", "sparse", "bare", "whole"))
RARELY = st.sampled_from((False, False, False, False, False, True))
SHARES = st.sampled_from((False, False, True))
HOLES = st.lists(st.sampled_from((True, True, False, None)), min_size=10, max_size=10)
"""For each member: told, absent (False) or null."""
REMAINDERS = st.sampled_from(("rest", "rest", "rest", "none"))
RECOGNIZED = st.sampled_from((0, 802, 1_872, -(2**62)))
REFUNDED: st.SearchStrategy[int | None] = st.sampled_from((None, 0, 30_000, 2**62))
SPLITS = st.sampled_from((0, 1, 2, -32_768))
EXTRAS: st.SearchStrategy[Json] = st.sampled_from(
    ({}, {}, {"dust_absorbed": True}, {"reserved_minor": 30_000, "matched_legs": 1}, {"fills": []})
)
ABSENT = object()
REFERENCES = st.sampled_from(("WD-1", ABSENT, None, "", "อ้างอิง '1' \\ %s"))
METADATA = st.sampled_from(
    (
        ABSENT,
        None,
        [],
        "text",
        {},
        {"ticket": ""},
        {"ticket": 7, "payout_id": "p-1"},
        {"ticket": "t-1", "payout_id": "p-1"},
        {"payout_id": "ป-2"},
        {"payout_id": None, "ticket": ["t-1"]},
    )
)
BESIDE: st.SearchStrategy[Json] = st.sampled_from(
    (
        {},
        {},
        {"fill": None},
        {"fill": "junk", "reversal": 5},
        {"fill": {"leg_ref": "leg_9"}},
        {"replacement_withdrawal_id": 7},
    )
)
"""What stands beside data.object where the type promises nothing: nobody looks at it."""
MOMENTS = st.sampled_from(
    ("2026-03-01T03:33:15.123Z", "2026-03-01T10:33:16.5+07:00", "2026-12-31T23:59:59.999999-11:30")
)
REPLACEMENTS = st.sampled_from((ABSENT, "wdr_new", None, "wdr_other"))


@st.composite
def calm_events(draw: st.DrawFn, place: int) -> list[Told]:
    """The events of one withdrawal, oldest first: a life of the contract, told without any contradiction."""
    legs = draw(own_legs(place))
    order, reference = draw(ORDERS), draw(REFERENCES)
    filled, next_leg = 0, 0
    events = []
    for kind, status in draw(st.sampled_from(LIVES)):
        leg = legs[min(next_leg, len(legs) - 1)]
        beside: Json = {}
        if kind == "filled":
            next_leg, filled = next_leg + 1, min(filled + leg.fill["amount_minor"], 2**63 - 1)
            beside = {"fill": leg.fill}
        elif kind == "fill_reversed":
            taken_back = legs[max(0, next_leg - 1)]
            beside = {"fill": taken_back.fill, "reversal": taken_back.reversal}
        remaining = 0 if status == "settled" else max(0, order[0] - filled)
        members = draw(_members("sparse" if kind == "matched" else "whole", order, filled, remaining))
        if reference is not ABSENT:
            members["merchant_reference"] = reference
        events.append(Told({"status": status, **members}, f"withdrawal.{kind}", beside))
    return events


@st.composite
def withdrawal_events(draw: st.DrawFn, place: int, pool: Sequence[Leg]) -> list[Told]:
    """The events of one withdrawal, oldest first: a life of the contract, or types and statuses in any order.

    Args:
        place: keeps its own legs apart from those of other withdrawals.
        pool: legs that the withdrawals of a world share, so that they quarrel about them.
    """
    legs = draw(own_legs(place))
    order = draw(ORDERS)
    reference, metadata, replacement = draw(REFERENCES), draw(METADATA), draw(REPLACEMENTS)
    filled, next_leg = 0, 0
    events = []
    for kind, status in draw(STEPS):
        leg = draw(st.sampled_from(pool)) if draw(SHARES) else legs[min(next_leg, len(legs) - 1)]
        beside = dict(draw(BESIDE))
        if kind == "filled":
            next_leg, filled = next_leg + 1, min(filled + leg.fill["amount_minor"], 2**63 - 1)
            beside |= {"fill": draw(told_fill(leg))}
        elif kind == "fill_reversed":
            taken_back = draw(st.sampled_from((legs[max(0, next_leg - 1)], legs[0], leg)))
            beside = draw(reversal_of(taken_back))
            if replacement is not ABSENT:
                beside["replacement_withdrawal_id"] = replacement
        if draw(RARELY):
            order, reference, metadata, replacement = draw(ORDERS), draw(REFERENCES), draw(METADATA), draw(REPLACEMENTS)
        remaining = 0 if status == "settled" else max(0, order[0] - filled)
        if draw(REMAINDERS) == "none":
            remaining = 0 if remaining else 1
        shape = draw(SHAPES_OF_MATCHED if kind == "matched" else SHAPES)
        members = draw(_members(shape, order, filled, remaining))
        named = {"merchant_reference": reference, "metadata": metadata}
        members |= {name: value for name, value in named.items() if value is not ABSENT}
        events.append(Told({"status": status, **members}, f"withdrawal.{kind}", beside, draw(MOMENTS)))
    return events


@st.composite
def _members(
    draw: st.DrawFn, shape: str, order: tuple[int, int | None, int | None, int | None], filled: int, remaining: int
) -> Json:
    """What a snapshot tells of the amounts: all, what `matched` tells, with holes, or nothing."""
    extras = draw(EXTRAS)
    totals = {"filled_minor": filled, "remaining_minor": remaining}
    if shape == "bare":
        return dict(extras)
    if shape == "sparse":
        return {**totals, **extras}
    total, fee, locked, splits = order
    whole = {
        "amount_total_minor": total,
        "fee_total_minor": fee,
        "total_locked_minor": locked,
        "max_splits": splits,
        **totals,
        "refunded_minor": draw(REFUNDED),
        "fee_recognized_minor": draw(RECOGNIZED),
        "settled_splits": draw(SPLITS),
        **extras,
    }
    if shape == "whole":
        return whole
    told = zip(whole.items(), draw(HOLES), strict=False)
    return {name: value if kept else None for (name, value), kept in told if kept is not False}
