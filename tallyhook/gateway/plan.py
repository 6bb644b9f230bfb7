"""Which deliveries the gateway sets out to make: when each first attempt is due, and which are made twice."""

import random
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tallyhook.errors import UsageError
from tallyhook.gateway.counts import Purpose
from tallyhook.gateway.world.model import SimEvent, World

LONGEST_JITTER: Final = timedelta(seconds=2)
"""How long after its creation an event's first attempt may come, where it is not held back."""

LONGEST_OVERTAKING: Final = timedelta(minutes=10)
"""How long after the event that overtakes it an event that is held back may come."""

SHORTEST_REPEAT, LONGEST_REPEAT = timedelta(seconds=1), timedelta(hours=24)
"""How long after the accepted attempt the gateway sends an event once more."""


@dataclass(frozen=True, slots=True)
class Mischief:
    """How the gateway strays from one delivery an event, in order; shares are 0..1.

    Args:
        reorder: share of events whose first attempt comes after that of a later event of the same object.
        duplicates: share of events that are sent again although they were answered 2xx.

    Raises:
        UsageError: a share is out of bounds.
    """

    reorder: float = 0.0
    duplicates: float = 0.0

    def __post_init__(self) -> None:
        for name, share in (("reorder", self.reorder), ("duplicates", self.duplicates)):
            if not 0 <= share <= 1:
                raise UsageError(f"--{name} {share:g}: must be a share from 0 to 1")


@dataclass(slots=True)
class Delivery:
    """One event on its way, through all attempts.

    Args:
        due: virtual moment of the next attempt.
        purpose: why it is made.
        repeat_after: how long after its acceptance the event is sent once more; None: it is not.
        made: attempts so far.
        first_at: virtual moment of the first attempt, from which the schedule counts.
    """

    event: SimEvent
    due: datetime
    purpose: Purpose = "first"
    repeat_after: timedelta | None = None
    made: int = 0
    first_at: datetime | None = None


def deliverable(world: World, unsubscribed: Set[str]) -> tuple[SimEvent, ...]:
    """The events that the gateway delivers on its own: neither withheld nor of a type the merchant does not want."""
    return tuple(event for event in world.events if not event.never_delivered and event.type not in unsubscribed)


def deliveries(
    world: World, mischief: Mischief, unsubscribed: Set[str] = frozenset(), accepted: Set[str] = frozenset()
) -> list[Delivery]:
    """One delivery for each deliverable event, in order of creation; the same for the same world and mischief.

    Each first attempt comes within two virtual seconds of the event's creation, and never before that of an earlier
    event of its object. Then a share of those that have a successor are held back until it went out.

    Args:
        accepted: ids of events that an earlier run has delivered: left out, and the others stay as they would be.
    """
    chance = random.Random(f"{world.seed}/deliveries")  # noqa: S311  a seeded world, not a secret
    events = deliverable(world, unsubscribed)
    jittered = dict(_jittered(events, chance))
    successors = _successors(events)
    planned = [
        Delivery(event, _first_attempt(event, jittered, successors, mischief, chance), repeat_after=repeat)
        for event, repeat in ((event, _repeat(mischief, chance)) for event in events)
    ]
    return [delivery for delivery in planned if delivery.event.id not in accepted]


def _jittered(events: tuple[SimEvent, ...], chance: random.Random) -> Iterator[tuple[str, datetime]]:
    newest: dict[str, datetime] = {}
    for event in events:
        due = event.created_at + LONGEST_JITTER * chance.random()
        newest[event.object_id] = due = max(due, newest.get(event.object_id, due))
        yield event.id, due


def _successors(events: tuple[SimEvent, ...]) -> Mapping[str, str]:
    """Event id -> id of the next event of the same object."""
    found: dict[str, str] = {}
    last: dict[str, str] = {}
    for event in events:
        if event.object_id in last:
            found[last[event.object_id]] = event.id
        last[event.object_id] = event.id
    return found


def _first_attempt(
    event: SimEvent,
    jittered: Mapping[str, datetime],
    successors: Mapping[str, str],
    mischief: Mischief,
    chance: random.Random,
) -> datetime:
    drawn, delay = chance.random(), LONGEST_OVERTAKING * chance.random()
    if event.id not in successors or drawn >= mischief.reorder:
        return jittered[event.id]
    # A millisecond more than nothing, so that it truly comes behind.
    return jittered[successors[event.id]] + delay + timedelta(milliseconds=1)


def _repeat(mischief: Mischief, chance: random.Random) -> timedelta | None:
    drawn, part = chance.random(), chance.random()
    return SHORTEST_REPEAT + (LONGEST_REPEAT - SHORTEST_REPEAT) * part if drawn < mischief.duplicates else None
