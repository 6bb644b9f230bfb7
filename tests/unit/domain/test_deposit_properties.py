"""Whatever order, however often: what must hold for every stream of deliveries of one deposit."""

from collections import Counter
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from schemas.events import DepositEvent
from sinks.domain.decision import DepositDecision, DepositState
from tests.unit.domain.samples import DEPOSIT_ID, FLAG, USER_ID, decided, event, fresh

STATUSES = ("open", "slip_received", "under_review", "settled", "reversed", "expired", "canceled", "rejected", "new")
CREDIT, DEBIT = f"deposit:{DEPOSIT_ID}:credit", f"deposit:{DEPOSIT_ID}:debit"


@dataclass(frozen=True)
class Sent:
    """One event as it was made up."""

    version: int
    status: str
    received_minor: int
    flagged: bool

    def event(self) -> DepositEvent:
        """The event of a deposit that was ordered for more than came in, with a fee of one satang."""
        amounts = {
            "ordered_amount_minor": self.received_minor + 5,
            "transferred_amount_minor": self.received_minor,
            "amount_received_minor": self.received_minor,
            "fee_total_minor": 1,
            "credited_amount_minor": self.received_minor - 1,
        }
        return event(self.version, self.status, overpayment=FLAG if self.flagged else None, **amounts)


@st.composite
def deliveries(draw: st.DrawFn) -> list[Sent]:
    """Events with distinct versions, in any order, any of them several times, some never."""
    versions = draw(st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True))
    status = st.one_of(st.sampled_from(STATUSES), st.sampled_from(("settled", "reversed")))
    sent = [Sent(version, draw(status), draw(st.integers(1, 10**12)), draw(st.booleans())) for version in versions]
    return draw(st.lists(st.sampled_from(sent), min_size=1, max_size=20))


def applied(arrivals: list[Sent], state: DepositState) -> tuple[DepositState, list[DepositDecision]]:
    """The deposit after the arrivals, and each decision."""
    decisions = []
    for sent in arrivals:
        decision = decided(state, sent.event())
        decisions.append(decision)
        state = decision.state
    return state, decisions


def newest_each_time(arrivals: list[Sent]) -> list[Sent]:
    """The arrivals that were newer than everything before them."""
    return [
        sent for place, sent in enumerate(arrivals) if all(sent.version > past.version for past in arrivals[:place])
    ]


def expected_entries(arrivals: list[Sent]) -> dict[str, int]:
    """The first settlement that was news is credited; the first reversal that was news after it takes the same back."""
    news = newest_each_time(arrivals)
    settled = next((place for place, sent in enumerate(news) if sent.status == "settled"), None)
    if settled is None:
        return {}
    amount_minor = news[settled].received_minor
    taken_back = any(sent.status == "reversed" for sent in news[settled:])
    return {CREDIT: amount_minor, DEBIT: -amount_minor} if taken_back else {CREDIT: amount_minor}


@given(deliveries())
def test_money_moves_once_and_back_at_most_once(arrivals: list[Sent]) -> None:
    """At most one credit, at most one debit, never a debit without its credit, and the sum is what it must be."""
    state, decisions = applied(arrivals, fresh())
    entries = [entry for decision in decisions for entry in decision.entries]
    assert [entry.entry_key for entry in entries] in ([], [CREDIT], [CREDIT, DEBIT])
    assert {entry.entry_key: entry.amount_minor for entry in entries} == expected_entries(arrivals)
    assert {entry.user_id for entry in entries} <= {USER_ID}
    assert (state.credit is not None, state.reversed) == (len(entries) > 0, len(entries) > 1)


@given(deliveries())
def test_the_end_is_the_highest_version(arrivals: list[Sent]) -> None:
    """The row takes the values of the highest version that arrived, and never goes back on the way."""
    state, decisions = applied(arrivals, fresh())
    highest = max(arrivals, key=lambda sent: sent.version)
    assert (state.version, state.snapshot) == (highest.version, highest.event())
    versions = [decision.state.version or 0 for decision in decisions]
    assert versions == sorted(versions)


@given(deliveries())
def test_each_effect_goes_out_once(arrivals: list[Sent]) -> None:
    """One effect a key; each event that was news has its own, save settlements and reversals, which go with money."""
    _, decisions = applied(arrivals, fresh())
    effects = [effect for decision in decisions for effect in decision.effects]
    assert set(Counter(effect.dedupe_key for effect in effects).values()) <= {1}
    shown = [sent for sent in newest_each_time(arrivals) if sent.status not in ("settled", "reversed")]
    money = len(expected_entries(arrivals))
    assert len(effects) == len(shown) + money
    assert [effect.name for effect in effects if effect.name in ("release_goods", "hold_goods")] == (
        ["release_goods", "hold_goods"][:money]
    )


@given(deliveries())
def test_a_verdict_follows_the_version_alone(arrivals: list[Sent]) -> None:
    """News advances, all else is late and leaves the state as it was."""
    _, decisions = applied(arrivals, fresh())
    news = [sent.version for sent in newest_each_time(arrivals)]
    advanced = [decision.state.version for decision in decisions if decision.verdict == "advanced"]
    assert advanced == news
    assert len(decisions) - len(news) == sum(decision.verdict == "late" for decision in decisions)
    assert all(not decision.effects and not decision.entries for decision in decisions if decision.verdict == "late")


@given(deliveries())
def test_everything_again_changes_nothing(arrivals: list[Sent]) -> None:
    """A resend of all that ever came, flags included, is silent."""
    state, _ = applied(arrivals, fresh())
    again, decisions = applied(arrivals, state)
    assert again == state
    assert all(not decision.effects and not decision.entries for decision in decisions)


@given(deliveries(), st.integers(0, 20))
def test_it_does_not_matter_where_a_batch_ends(arrivals: list[Sent], cut: int) -> None:
    """What was stored and loaded again (without the snapshot) decides as the state in hand does."""
    _, whole = applied(arrivals, fresh())
    halfway, first = applied(arrivals[:cut], fresh())
    _, second = applied(arrivals[cut:], replace(halfway, snapshot=None))
    assert [(made.effects, made.entries, made.flag, made.reason) for made in first + second] == [
        (made.effects, made.entries, made.flag, made.reason) for made in whole
    ]


@given(deliveries())
def test_every_flag_is_kept(arrivals: list[Sent]) -> None:
    """From news and late events alike, with the version that carried it."""
    _, decisions = applied(arrivals, fresh())
    kept = [decision.flag and decision.flag.observed_deposit_version for decision in decisions]
    assert kept == [sent.version if sent.flagged else None for sent in arrivals]
