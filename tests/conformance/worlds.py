"""Random worlds: deposits that live every life of the contract, and the way their events happen to arrive.

Every choice shrinks towards the dull one: one deposit, in order, once, in one batch, correlated before its first event.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.conformance.bodies import Fault, encode, faults
from tests.conformance.lives import Claim, claims, snapshots

PARTITIONS = 3
USERS = st.sampled_from(("usr_1", "usr_2", "ผู้ใช้ '3' \\ %s"))
ORDERS = st.sampled_from(("ord_1", "ord_2", "คำสั่ง-3"))
ID_PREFIXES = st.sampled_from(("dep_", "ฝาก-", "a'b\"\\%s ", "x" * 200))
# The first of each is the dull one, towards which a counterexample shrinks; Hypothesis also draws it most often, so the
# others are not made rarer than they must be.
OBJECTS = (2, 1, 3, 4)
"""How many objects a world has; one whose events never come leaves no trace in it."""
DELAYS = st.sampled_from((0, 1, 2, 3, 4, 6, 9))
"""How many steps of its object's life an event is on its way."""
COPIES = st.sampled_from((0, 1, 1, 1, 1, 1, 1, 2, 3, 5))
"""How often an event comes; 0 is one that never does."""
REPLAYS = st.sampled_from((0, 0, 0, 0, 0, 0, 0, 0, 1, 4))
"""How many records later the stream says the same again; 0 is never."""
CUTS = st.sampled_from((False, False, True))
CORRELATED_AT = st.sampled_from((0, 0, 1, 2, 3, 6, 1_000, None))
"""Before which arrival the correlation is written; beyond the last one is after all, None is never."""
VERSION_STEPS = st.sampled_from((1, 1, 1, 2, 7, 0))
"""A step of 0 breaks the gateway's word that versions differ: the guard must hold all the same."""
ID_SUFFIXES = st.sampled_from(("", "ก", "%s"))
FAULTS, OTHER_FAULTS = faults(), faults(of_deposits=False)
OTHER_KINDS = ("withdrawal_order", "balance_transaction", "something_else")


@dataclass(frozen=True, slots=True, repr=False)
class Event:
    """One event as the gateway made it.

    Args:
        version: None for objects without versions.
        fault: what is wrong with it, for a person who reads the counterexample; None when nothing is.
    """

    event_id: str
    type: str
    object_id: str
    object_kind: str
    status: str
    version: int | None
    sequence: int
    livemode: bool
    partition: int
    body: bytes
    fault: str | None

    def __repr__(self) -> str:
        """Short: a counterexample tells the bodies once, batch by batch."""
        return f"<{self.event_id}: {self.object_kind} {self.object_id[:8]} v{self.version} {self.status}>"


@dataclass(frozen=True, slots=True)
class Correlation:
    """A row of pg_deposit_correlations, as the merchant's own service writes it."""

    pg_deposit_id: str
    merchant_reference: str
    our_order_id: str
    our_user_id: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """One record: an event at the door, or (same `source_offset` again) the stream repeating itself after a crash."""

    event: Event
    source_offset: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction of the sink takes, after the correlations that were written just before it.

    Args:
        looks_first: whether the sink looks for parked events before it; the batch itself finds those it touches.
    """

    correlations: tuple[Correlation, ...]
    looks_first: bool
    arrivals: tuple[Arrival, ...]


World = tuple[Batch, ...]


@dataclass(frozen=True, slots=True)
class _Life:
    """An object's events, and the place in the arrivals at which its correlation is written (None: never)."""

    events: tuple[Event, ...]
    correlation: Correlation | None
    correlated_at: int | None


@st.composite
def worlds(draw: st.DrawFn, objects: Sequence[int] = OBJECTS) -> World:
    """Batches of arrivals of the events of some objects, whose lives go on at the same time."""
    pool = draw(claims())
    numbers = iter(range(1, 10_000))
    lives = [draw(_life(place, pool, numbers.__next__)) for place in range(draw(st.sampled_from(objects)))]
    journeys: list[tuple[int, Event]] = []
    for life in lives:
        for born, event in enumerate(life.events):
            journeys += [(born + draw(DELAYS), event) for _ in range(draw(COPIES))]
    journeys.sort(key=lambda journey: journey[0])
    arrivals = [Arrival(event, offset) for offset, (_, event) in enumerate(journeys)]
    for place in reversed(range(len(arrivals))):
        distance = draw(REPLAYS)
        if distance:
            arrivals.insert(place + distance, arrivals[place])
    return _cut(draw, arrivals, lives)


def _cut(draw: st.DrawFn, arrivals: Sequence[Arrival], lives: Sequence[_Life]) -> World:
    """Batches end where a correlation is written and at some other places; the last one only looks for parked ones."""
    written: dict[int, list[Correlation]] = {}
    present = {arrival.event.object_id for arrival in arrivals}
    for life in lives:
        if life.correlation is None or life.correlated_at is None:
            continue
        if life.correlation.pg_deposit_id in present:
            written.setdefault(min(life.correlated_at, len(arrivals)), []).append(life.correlation)
    others = {place for place in range(1, len(arrivals)) if draw(CUTS)}
    edges = sorted({0, len(arrivals)} | others | set(written))
    return tuple(
        Batch(tuple(written.get(start, ())), draw(st.booleans()), tuple(arrivals[start:end]))
        for start, end in zip(edges, [*edges[1:], len(arrivals)], strict=True)
    )


@st.composite
def _life(draw: st.DrawFn, place: int, pool: Sequence[Claim], number: Callable[[], int]) -> _Life:
    is_deposit = draw(st.integers(0, 5)) < 5
    object_id = f"{draw(ID_PREFIXES)}{place}"
    partition = draw(st.integers(0, PARTITIONS - 1))
    if not is_deposit:
        return _Life(tuple(_other_events(draw, object_id, partition, number)), None, None)
    correlation = Correlation(object_id, f"ref-{place}", draw(ORDERS), draw(USERS))
    correlated_at = draw(CORRELATED_AT)
    events = []
    version = draw(st.integers(0, 3))
    for snapshot in draw(snapshots(pool)):
        o = {"id": object_id, "object": "deposit_order", "version": version, **snapshot}
        events.append(_event(o, partition, number(), draw(FAULTS), draw))
        version += draw(VERSION_STEPS)
    return _Life(tuple(events), correlation, correlated_at)


def _other_events(draw: st.DrawFn, object_id: str, partition: int, number: Callable[[], int]) -> list[Event]:
    kind = draw(st.sampled_from(OTHER_KINDS))
    events = []
    for version in range(draw(st.integers(1, 3))):
        o: dict[str, Any] = {"id": object_id, "object": kind, "amount_minor": 5, "overpayment": {"not": "a flag"}}
        if kind != "balance_transaction":
            o |= {"version": version, "status": draw(st.sampled_from(("settled", "open")))}
        events.append(_event(o, partition, number(), draw(OTHER_FAULTS), draw))
    return events


def _event(o: dict[str, Any], partition: int, number: int, fault: Fault | None, draw: st.DrawFn) -> Event:
    event_id = f"evt-{number} {draw(ID_SUFFIXES)}".strip()
    return make_event(o, event_id, partition, number * 3, fault, escapes=draw(st.booleans()))


def make_event(
    o: dict[str, Any], event_id: str, partition: int, sequence: int, fault: Fault | None, *, escapes: bool = False
) -> Event:
    """The event of a snapshot, as the gateway would make it, save for the fault."""
    event_type = f"{o['object'].removesuffix('_order')}.{o.get('status', 'posted')}"
    event = {
        "id": event_id,
        "object": "event",
        "type": event_type,
        "api_version": "2026-01-01",
        "livemode": True,
        "created_at": "2026-03-01T03:33:15.123Z",
        "sequence": sequence,
        "account": {"merchant_id": "mer_1", "white_label_id": None},
        "data": {"object": o, "previous_attributes": {"status": "open"}},
    }
    body, livemode = encode(event, fault, escapes=escapes)
    return Event(
        event_id=event_id,
        type=event_type,
        object_id=o["id"],
        object_kind=o["object"],
        status=o.get("status", ""),
        version=o.get("version"),
        sequence=sequence,
        livemode=livemode,
        partition=partition,
        body=body,
        fault=None if fault is None else fault.name,
    )
