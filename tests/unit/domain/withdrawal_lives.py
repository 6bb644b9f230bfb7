"""Lives of withdrawals for properties: events with anything in any order, and what must have come of them.

What is expected is computed here from the arrivals alone, without the rules that are under test.
"""

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from sinks.domain.withdrawal_state import WithdrawalReading
from tests.unit.domain.withdrawal_samples import TICKET, WITHDRAWAL_ID, Json, sparse

STATUSES = ("pending_approval", "open", "partially_filled", "settled", "expired", "canceled", "rejected", "new")
OVERWRITTEN = ("filled_minor", "remaining_minor", "refunded_minor", "fee_recognized_minor", "settled_splits")
SET_ONCE = ("fee_total_minor", "total_locked_minor", "max_splits", "merchant_reference")
NEEDED = ("amount_total_minor", "remaining_minor")
LEGS = 3


@dataclass(frozen=True)
class Sent:
    """One event as it was made up.

    Args:
        members: of the order, as far as the event carries them.
        filled, lost: the number of the chunk that it brings or takes back.
    """

    version: int
    status: str
    members: tuple[tuple[str, int | str], ...]
    filled: int | None = None
    lost: int | None = None

    def value(self, name: str) -> int | str | None:
        """A member of the order; None where the event does not carry it."""
        return dict(self.members).get(name)

    def reading(self) -> WithdrawalReading:
        """The event."""
        type_, siblings = "withdrawal.updated", Json()
        if self.filled is not None:
            type_, siblings = "withdrawal.filled", Json(fill=chunk(self.filled))
        if self.lost is not None:
            type_, siblings = "withdrawal.fill_reversed", {"fill": chunk(self.lost), **loss(self.lost)}
        return sparse(self.version, self.status, type_, **dict(self.members), **siblings)


def chunk(number: int) -> Json:
    """`data.fill` of a chunk: the same whenever it is told."""
    return {"leg_ref": f"leg_{number}", "amount_minor": 1_000 + number, "balance_transaction_id": f"btxn_{number}"}


def loss(number: int) -> Json:
    """The reversal of a chunk."""
    reversal = {
        "reason_code": "BANK_RECALL",
        "reverses_balance_transaction_id": f"btxn_{number}",
        "balance_transaction_id": f"btxn_back_{number}",
    }
    return {"reversal": reversal, "replacement_withdrawal_id": f"wdr_instead_{number}"}


AMOUNTS: dict[str, st.SearchStrategy[int | str]] = {
    **dict.fromkeys((*OVERWRITTEN, *SET_ONCE), st.just(0) | st.integers(0, 10_000)),
    "amount_total_minor": st.integers(1, 10_000),
    "remaining_minor": st.sampled_from((0, 0, 5_000)),
    "merchant_reference": st.sampled_from((TICKET, "WD-8")),
}
ENOUGH = {name: AMOUNTS[name] for name in NEEDED}
REST = {name: amounts for name, amounts in AMOUNTS.items() if name not in NEEDED}
NOTHING: dict[str, st.SearchStrategy[int | str]] = {}
MEMBERS = (
    st.fixed_dictionaries(ENOUGH, optional=REST)
    | st.fixed_dictionaries(NOTHING, optional=AMOUNTS)
    | st.fixed_dictionaries(AMOUNTS)
)
"""A snapshot that makes a row, one that may be too sparse for it, and a whole one."""


@st.composite
def deliveries(draw: st.DrawFn) -> list[Sent]:
    """Events with distinct versions, sparse or whole: in order, or in any order with some several times and some never.

    Orders that settle and lose a chunk are made more often than chance would have them.
    """
    versions = draw(st.lists(st.integers(0, 40), min_size=1, max_size=10, unique=True))
    status = st.sampled_from(STATUSES) | st.sampled_from(("settled", "settled", "partially_filled"))
    leg = st.integers(1, LEGS)
    sent = []
    for version in versions:
        role, members = draw(st.sampled_from(("plain", "filled", "lost"))), tuple(draw(MEMBERS).items())
        filled, lost = (draw(leg) if role == wanted else None for wanted in ("filled", "lost"))
        sent.append(Sent(version, draw(status), members, filled, lost))
    ordered = sorted(sent, key=lambda event: event.version)
    some = st.lists(st.sampled_from(sent), max_size=12)
    return draw(st.just(ordered) | st.permutations(sent)) + draw(some) if draw(st.booleans()) else draw(some) or sent


def in_order(arrivals: list[Sent]) -> list[Sent]:
    """The arrivals as they must be applied: the first that makes a row, those that waited for it, the rest; or none."""
    for place, sent in enumerate(arrivals):
        if all(sent.value(name) is not None for name in NEEDED):
            return [sent, *arrivals[:place], *arrivals[place + 1 :]]
    return []


def is_news(applied: list[Sent], place: int) -> bool:
    """Whether the version is above all before it."""
    return all(applied[place].version > past.version for past in applied[:place])


def known(applied: list[Sent], place: int, name: str) -> int | str | None:
    """What must be known of a member after the event at `place`."""
    told = [sent.value(name) for sent in applied[: place + 1]]
    if name in (*SET_ONCE, "amount_total_minor"):
        return next((value for value in told if value is not None), None)
    news = [value for index, value in enumerate(told) if is_news(applied, index) and value is not None]
    return news[-1] if news else (0 if name == "filled_minor" else None)


def first_losses(applied: list[Sent]) -> dict[int, int]:
    """Each chunk that was taken back, and where that was told first."""
    places: dict[int, int] = {}
    for place, sent in enumerate(applied):
        if sent.lost is not None:
            places.setdefault(sent.lost, place)
    return places


def closings(applied: list[Sent]) -> list[int]:
    """Where the order is paid out in full and nothing forbids to close it."""
    losses = first_losses(applied).values()
    return [
        place
        for place, sent in enumerate(applied)
        if is_news(applied, place)
        and (sent.status, sent.lost) == ("settled", None)
        and known(applied, place, "remaining_minor") == 0
        and not any(loss_at < place and applied[loss_at].status == "settled" for loss_at in losses)
    ]


def is_closed(applied: list[Sent]) -> bool:
    """Whether the row says closed in the end: some event closed it and no reversal came after."""
    return any(all(sent.lost is None for sent in applied[place:]) for place in closings(applied))


def expected_keys(applied: list[Sent]) -> list[str]:
    """The dedupe keys of all effects, sorted."""

    def news(wanted: Callable[[Sent], bool]) -> list[Sent]:
        return [sent for place, sent in enumerate(applied) if is_news(applied, place) and wanted(sent)]

    shown = news(lambda sent: sent.lost is None)
    keys = [f"evt_{sent.version}:show_progress" for sent in shown if sent.status == "partially_filled"]
    others = ("pending_approval", "open", "new")
    keys += [f"evt_{sent.version}:update_local_status" for sent in shown if sent.status in others]
    keys += [f"withdrawal-fill:leg_{leg}:reverse:compensate_reversed_fill" for leg in first_losses(applied)]
    one_shots = {
        "refund_unfilled": news(lambda sent: sent.status in ("expired", "canceled")),
        "release_user_lock": news(lambda sent: sent.status == "rejected"),
        "close_withdrawal": closings(applied),
    }
    return sorted(keys + [f"withdrawal:{WITHDRAWAL_ID}:{name}" for name, causes in one_shots.items() if causes])
