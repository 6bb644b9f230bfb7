"""Random worlds: objects that live every life of the contract, and the way their events happen to arrive.

Every choice shrinks towards the dull one: one deposit, in order, once, in one batch, correlated before its first event.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.conformance.deposit_lives import claims
from tests.conformance.events import Event
from tests.conformance.histories import NOUNS, Correlation, History, Noun, Shared, histories
from tests.conformance.legs import shared_legs

PARTITIONS = 3
EVENLY: tuple[Noun, ...] = ("deposit", "withdrawal", "deposit", "withdrawal", *NOUNS)
# The first of each is the dull one, towards which a counterexample shrinks; Hypothesis also draws it most often, so the
# others are not made rarer than they must be.
OBJECTS = (2, 1, 3, 4)
"""How many objects a world has; one whose events never come leaves no trace in it."""
DELAYS = st.sampled_from((0, 1, 2, 3, 4, 6, 9))
"""How many steps of its object's life an event is on its way, unless all come in order."""
COPIES = st.sampled_from((0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 5))
"""How often an event comes; 0 is one that never does."""
REPLAYS = st.sampled_from((0, 0, 0, 0, 0, 0, 0, 0, 1, 4))
"""How many records later the stream says the same again; 0 is never."""
CUTS = st.sampled_from((False, False, True))


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


@st.composite
def worlds(draw: st.DrawFn, objects: Sequence[int] = OBJECTS, nouns: Sequence[Noun] = EVENLY) -> World:
    """Batches of arrivals of the events of some objects, whose lives go on at the same time."""
    shared = Shared(draw(claims()), draw(shared_legs()), iter(range(1, 10_000)).__next__)
    lives = [draw(histories(place, nouns, shared)) for place in range(draw(st.sampled_from(objects)))]
    journeys: list[tuple[int, Event]] = []
    for life in lives:
        shuffled = draw(st.booleans())
        for born, event in enumerate(life.events):
            journeys += [(born + (draw(DELAYS) if shuffled else 0), event) for _ in range(draw(COPIES))]
    journeys.sort(key=lambda journey: journey[0])
    arrivals = [Arrival(event, offset) for offset, (_, event) in enumerate(journeys)]
    for place in reversed(range(len(arrivals))):
        distance = draw(REPLAYS)
        if distance:
            arrivals.insert(place + distance, arrivals[place])
    return _cut(draw, arrivals, lives)


def _cut(draw: st.DrawFn, arrivals: Sequence[Arrival], lives: Sequence[History]) -> World:
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
