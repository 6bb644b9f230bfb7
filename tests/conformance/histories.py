"""The history of one object of any kind: its events from first to last, and when its correlation is written."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from hypothesis import strategies as st

from tests.conformance.bodies import FAULTS_OF_DEPOSITS, Fault, faults
from tests.conformance.deposit_lives import Claim, snapshots
from tests.conformance.events import Event, Told, make_event
from tests.conformance.legs import Leg
from tests.conformance.transaction_lives import transactions
from tests.conformance.withdrawal_faults import OF_FILLED, OF_REVERSED, OF_TRANSACTIONS, OF_WITHDRAWALS
from tests.conformance.withdrawal_lives import calm_events, withdrawal_events

Noun = Literal["deposit", "withdrawal", "transaction", "other"]
NOUNS: tuple[Noun, ...] = get_args(Noun)
PARTITIONS = st.integers(0, 2)
USERS = st.sampled_from(("usr_1", "usr_2", "ผู้ใช้ '3' \\ %s"))
ORDERS = st.sampled_from(("ord_1", "ord_2", "คำสั่ง-3"))
ID_PREFIXES = st.sampled_from(("dep_", "ฝาก-", "a'b\"\\%s ", "x" * 200))
ID_SUFFIXES = st.sampled_from(("", "ก", "%s"))
CORRELATED_AT = st.sampled_from((0, 0, 1, 2, 3, 6, 1_000, None))
"""Before which arrival the correlation is written; beyond the last one is after all, None is never."""
FIRST_VERSIONS = st.sampled_from((0, 1, 2, 3, 2**53 + 1, 2**63 - 100))
VERSION_STEPS = st.sampled_from((1, 1, 1, 2, 7, 0))
"""A step of 0 breaks the gateway's word that versions differ: the guard must hold all the same."""
ODD_TYPES = st.sampled_from(
    (*(None,) * 24, "withdrawal.filled", "withdrawal.fill_reversed", "deposit.settled", "balance.debited", "news")
)
"""The kind of the object chooses its rules, whatever the type says; None is the type that belongs to it."""
NAMESAKES = st.sampled_from((False, False, False, False, False, True))
OTHER_KINDS = ("something_else", "payout_batch")
FAULTS = {
    "deposit": faults(*FAULTS_OF_DEPOSITS),
    "withdrawal": faults(*OF_WITHDRAWALS),
    "withdrawal.filled": faults(*OF_WITHDRAWALS[:3], *OF_FILLED),
    "withdrawal.fill_reversed": faults(*OF_WITHDRAWALS[:3], *OF_REVERSED),
    "transaction": faults(*OF_TRANSACTIONS),
    "other": faults(),
}


@dataclass(frozen=True, slots=True)
class Correlation:
    """A row of pg_deposit_correlations, as the merchant's own service writes it."""

    pg_deposit_id: str
    merchant_reference: str
    our_order_id: str
    our_user_id: str


@dataclass(frozen=True, slots=True)
class History:
    """An object's events, and the place in the arrivals at which its correlation is written (None: never)."""

    events: tuple[Event, ...]
    correlation: Correlation | None = None
    correlated_at: int | None = None


@dataclass(frozen=True, slots=True)
class Shared:
    """What the objects of a world have in common and quarrel about.

    Args:
        number: gives the next event's number.
        homes: the partition of each id so far, and the nouns that have it.
    """

    claims: Sequence[Claim]
    legs: Sequence[Leg]
    number: Callable[[], int]
    homes: dict[str, tuple[int, set[Noun]]] = field(default_factory=dict)


@st.composite
def histories(draw: st.DrawFn, place: int, nouns: Sequence[Noun], shared: Shared) -> History:
    """One object of one of the nouns; its id may be that of an object of another noun, which says nothing."""
    noun = draw(st.sampled_from(nouns))
    others = [known for known, (_, holders) in shared.homes.items() if noun not in holders]
    is_namesake = bool(others) and draw(NAMESAKES)
    object_id = others[0] if is_namesake else f"{draw(ID_PREFIXES)}{place}"
    partition, holders = shared.homes.setdefault(object_id, (draw(PARTITIONS), set()))
    holders.add(noun)
    o: dict[str, Any] = {"id": object_id}
    match noun:
        case "deposit":
            correlation = Correlation(object_id, f"ref-{place}", draw(ORDERS), draw(USERS))
            correlated_at = draw(CORRELATED_AT)
            told = [Told(snapshot) for snapshot in draw(snapshots(shared.claims))]
            o |= {"object": "deposit_order"}
            return History(_versions(draw, o, noun, told, partition, shared), correlation, correlated_at)
        case "withdrawal":
            o |= {"object": "withdrawal_order"}
            if draw(st.booleans()):
                return History(tuple(_calm(draw, {**o, "version": 1}, draw(calm_events(place)), partition, shared)))
            return History(_versions(draw, o, noun, draw(withdrawal_events(place, shared.legs)), partition, shared))
        case "transaction":
            o |= {"object": "balance_transaction"}
            events = [_event(draw, o, noun, told, partition, shared) for told in draw(transactions())]
            return History(tuple(events))
        case "other":
            o |= {"object": draw(st.sampled_from(OTHER_KINDS)), "amount_minor": 5}
            told = [
                Told({"status": draw(st.sampled_from(("settled", "open"))), "overpayment": {"not": "a flag"}})
                for _ in range(draw(st.integers(1, 3)))
            ]
            return History(_versions(draw, o, noun, told, partition, shared))


def _calm(draw: st.DrawFn, o: dict[str, Any], told: Sequence[Told], partition: int, shared: Shared) -> Iterator[Event]:
    """Events without a fault, whose versions rise one by one from that of `o`."""
    escapes = draw(st.booleans())
    for version, one in enumerate(told, o["version"]):
        number = shared.number()
        whole = {**o, "version": version, **one.members}
        yield make_event(whole, f"evt-{number}", partition, number * 3, None, told=one, escapes=escapes)


def _versions(
    draw: st.DrawFn, o: dict[str, Any], noun: Noun, told: Sequence[Told], partition: int, shared: Shared
) -> tuple[Event, ...]:
    version = draw(FIRST_VERSIONS)
    events = []
    for one in told:
        events.append(_event(draw, {**o, "version": version}, noun, one, partition, shared))
        version += draw(VERSION_STEPS)
    return tuple(events)


def _event(draw: st.DrawFn, o: dict[str, Any], noun: Noun, told: Told, partition: int, shared: Shared) -> Event:
    number = shared.number()
    event_id = f"evt-{number} {draw(ID_SUFFIXES)}".strip()
    odd = draw(ODD_TYPES)
    if odd is not None:
        told = Told(told.members, odd, told.beside, told.created_at)
    of_type = told.type if noun == "withdrawal" else None
    fault: Fault | None = draw(FAULTS.get(of_type or noun, FAULTS[noun]))
    whole = {**o, **told.members}
    return make_event(whole, event_id, partition, number * 3, fault, told=told, escapes=draw(st.booleans()))
