"""The chunks of withdrawals and their reversals, told well mostly and otherwise sometimes."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

ABSENT = object()
MOMENTS = ("2026-03-01T03:33:10Z", "2026-03-01T10:33:10+07:00", "2026-03-01T03:33:10.000001Z", None, ABSENT)
"""The first two are the same instant."""
AMOUNTS = st.sampled_from((30_000, 40_000, 1, 2**62, -5))
REASONS = st.sampled_from(("BANK_RECALL", "ACCOUNT_FROZEN", "SLIP_INVALIDATED_AFTER_SETTLEMENT"))
# A transaction that two legs name is a contradiction only where both are reversed.
TRANSACTIONS = st.sampled_from((None, None, None, None, "btxn_shared", "btxn_shared_too"))
"""A transaction id that legs may share; None is one of the leg's own."""
OPTIONAL: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("sequence", (1, ABSENT, None, 2, 32_767)),
    ("fee_recognized_minor", (802, ABSENT, None, 0, 2**63 - 1)),
    ("settled_at", MOMENTS),
    ("auto_confirm_at", MOMENTS),
)
DETAILS = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in OPTIONAL})
NAMELESS = st.sampled_from((False, False, False, False, True))
CHANGES = st.sampled_from((*(None,) * 18, *range(6)))
"""Which member of a fill or reversal is told otherwise than the last time."""
SHARED_REFS = ("leg_1", "leg_2", "ขา-3")


@dataclass(frozen=True, slots=True)
class Leg:
    """A chunk as the gateway knows it.

    Args:
        fill: as `withdrawal.filled` tells it; absent members are left out.
        reversal: as `withdrawal.fill_reversed` tells it.
    """

    fill: Json
    reversal: Json


@st.composite
def _leg(draw: st.DrawFn, leg_ref: str) -> Leg:
    transaction = draw(TRANSACTIONS) or f"btxn_{leg_ref}"
    reversing = draw(TRANSACTIONS) or f"btxn_{leg_ref}_back"
    fill = {"leg_ref": leg_ref, "amount_minor": draw(AMOUNTS), "balance_transaction_id": transaction, **draw(DETAILS)}
    reversal = {
        "reason_code": draw(REASONS),
        "reverses_balance_transaction_id": transaction,
        "balance_transaction_id": reversing if reversing != transaction else f"btxn_{leg_ref}_back",
    }
    return Leg({name: value for name, value in fill.items() if value is not ABSENT}, reversal)


def shared_legs() -> st.SearchStrategy[list[Leg]]:
    """One to three legs that the withdrawals of a world share."""
    return st.sampled_from((1, 1, 2, 3)).flatmap(lambda count: st.tuples(*map(_leg, SHARED_REFS[:count])).map(list))


def own_legs(place: int) -> st.SearchStrategy[list[Leg]]:
    """Three legs that are only this withdrawal's."""
    return st.tuples(*(_leg(f"leg_{place}_{number}") for number in range(3))).map(list)


@st.composite
def told_fill(draw: st.DrawFn, leg: Leg) -> Json:
    """The fill as one event tells it: as ever, or with a member changed, perhaps to the same instant in other words."""
    fill = dict(leg.fill)
    if draw(NAMELESS):
        fill["balance_transaction_id"] = None
    change = draw(CHANGES)
    if change == 0:
        fill["amount_minor"] = draw(AMOUNTS)
    elif change == 1:
        fill["balance_transaction_id"] = "btxn_shared"
    elif change is not None:
        name, values = OPTIONAL[change - 2]
        value = draw(st.sampled_from(values))
        fill = {key: kept for key, kept in fill.items() if key != name}
        if value is not ABSENT:
            fill[name] = value
    return fill


@st.composite
def reversal_of(draw: st.DrawFn, leg: Leg) -> Json:
    """`fill` and `reversal` as one event tells them; other members of the fill may be anything."""
    fill, reversal = dict(leg.fill), dict(leg.reversal)
    change = draw(CHANGES)
    if change == 0:
        fill["amount_minor"] = draw(AMOUNTS)
    elif change == 1:
        fill["balance_transaction_id"] = reversal["reverses_balance_transaction_id"] = "btxn_shared"
    elif change == 2:
        reversal["balance_transaction_id"] = "btxn_shared_too"
    elif change == 3:
        reversal["reason_code"] = draw(REASONS)
    elif change is not None:
        fill |= {"sequence": "not looked at", "settled_at": 7}
    return {"fill": fill, "reversal": reversal}
