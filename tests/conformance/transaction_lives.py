"""Balance transactions: one event usually, several of one id sometimes, alike or contradictory."""

from typing import Any

from hypothesis import strategies as st

from tests.conformance.events import Told

Json = dict[str, Any]

ABSENT = object()
MEMBERS: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("type", ("withdrawal_fill", "deposit", "", "ค่าธรรมเนียม")),
    ("direction", ("debit", "credit", "sideways")),
    ("amount_minor", (30_000, 0, -5, 2**63 - 1, -(2**63))),
    ("bucket_from", ("available", "pending", "", None, ABSENT)),
    ("bucket_to", (ABSENT, "available", None)),
    ("source", ({"id": "wdr_1", "object": "withdrawal_order"}, {"id": "dep_1"}, {}, {"id": None}, None, ABSENT)),
    ("created_at", ("2026-03-01T03:33:10Z", "2026-03-01T10:33:10+07:00", "2026-03-01T03:33:10.000001Z")),
)
BALANCES = st.sampled_from(
    (ABSENT, {"available_minor": 1, "rates": [1.50, 2e2]}, None, 5, "ยอด", [], False, {"deep": {"null": None}})
)
CONTENT = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in MEMBERS})
CHANGED = st.sampled_from((None, None, None, *MEMBERS))
COUNTS = st.sampled_from((1, 2, 3))
KINDS = st.sampled_from(("debited", "credited", "cleared", "unheard_of"))


@st.composite
def transactions(draw: st.DrawFn) -> list[Told]:
    """The events of one transaction."""
    content = draw(CONTENT)
    told: list[Told] = []
    for _ in range(draw(COUNTS)):
        changed = draw(CHANGED)
        other = {} if changed is None else {changed[0]: draw(st.sampled_from(changed[1]))}
        members = {**content, **other, "balance_after": draw(BALANCES)}
        present = {name: value for name, value in members.items() if value is not ABSENT}
        told.append(Told(present, f"balance.{draw(KINDS)}"))
    return told
