"""The journal: a second run of the same world goes on where the first one was."""

from datetime import timedelta
from pathlib import Path

import pytest

from tallyhook.errors import TallyhookError
from tallyhook.gateway.journal import Journal
from tallyhook.gateway.plan import Mischief, deliveries
from tallyhook.gateway.world.generate import generate
from tallyhook.gateway.world.model import World
from tests.unit.gateway_delivery.stepping import START, event, world_of

WORLD = world_of([event(1), event(2), event(3)])
LATER = START + timedelta(hours=3, microseconds=7)


def written(path: Path) -> None:
    """A journal of two events."""
    journal = Journal(path, WORLD)
    assert (journal.accepted, journal.reached) == (set(), START)
    journal.note("evt_2", LATER)
    journal.note("evt_1", START + timedelta(minutes=1))
    journal.note("evt_2", LATER + timedelta(days=1))  # a duplicate: known already
    journal.close()


def test_what_was_noted_is_known_to_the_next(tmp_path: Path) -> None:
    """Ids and the latest moment; more can be added."""
    path = tmp_path / "folder" / "journal"
    written(path)
    second = Journal(path, WORLD)
    assert (second.accepted, second.reached) == ({"evt_1", "evt_2"}, LATER)
    second.note("evt_3", LATER)
    second.close()
    third = Journal(path, WORLD)
    third.close()
    assert third.accepted == {"evt_1", "evt_2", "evt_3"}


def test_a_torn_last_line_is_cut_off(tmp_path: Path) -> None:
    """Wherever the process was killed: whole lines count, and the next ones are whole again."""
    path = tmp_path / "journal"
    written(path)
    whole = path.read_bytes()
    heading = whole.index(b"\n") + 1
    for length in range(heading, len(whole)):
        path.write_bytes(whole[:length])
        journal = Journal(path, WORLD)
        known = set(journal.accepted)
        assert len(known) == whole[heading:length].count(b"\n")
        journal.note("evt_3", LATER)
        journal.close()
        again = Journal(path, WORLD)
        again.close()
        assert again.accepted == known | {"evt_3"}


@pytest.mark.parametrize(
    "other",
    [
        world_of([event(1), event(2)]),
        world_of([event(1), event(2), event(3, withheld=True)]),
        world_of([event(1), event(2), event(4)]),
    ],
)
def test_a_journal_of_another_world_is_begun_anew(tmp_path: Path, other: World) -> None:
    """Also where only one event is another one, and where the file is something else."""
    path = tmp_path / "journal"
    written(path)
    journal = Journal(path, other)
    journal.close()
    assert journal.accepted == set()
    path.write_text("something else\n")
    anew = Journal(path, WORLD)
    anew.close()
    assert anew.accepted == set()


def test_a_spoilt_journal_is_told(tmp_path: Path) -> None:
    """With its path and what to do."""
    path = tmp_path / "journal"
    written(path)
    path.write_bytes(path.read_bytes() + b"no moment evt_9\n")
    with pytest.raises(TallyhookError, match="remove it"):
        Journal(path, WORLD)
    with pytest.raises(TallyhookError, match="cannot be used"):
        Journal(tmp_path, WORLD)


def test_what_was_accepted_is_not_planned_again_and_the_rest_stays_as_it_was() -> None:
    """The same moments and repeats for what is left."""
    world, mischief = generate(4, 30), Mischief(reorder=0.5, duplicates=0.5)
    accepted = {event.id for event in world.events[::3]}
    whole, rest = deliveries(world, mischief), deliveries(world, mischief, accepted=accepted)
    assert rest == [delivery for delivery in whole if delivery.event.id not in accepted]
    assert 0 < len(rest) < len(whole)
