"""Several keepers of the sequence: one at a time, and whatever becomes of it, the next one goes on exactly."""

import random

import psycopg
import pytest

from tests.integration.sinks.numbered import Numbered, missing, settle
from tests.running import await_true


def test_one_keeps_at_a_time_and_the_next_one_goes_on(place: Numbered) -> None:
    """While the lease lasts the other takes nothing in; after a clean end at once, after a dead one when it is over."""
    one, two = place.keeper("one"), place.keeper("two")
    place.arrive(1, 3)
    settle(one)
    place.arrive(5)
    assert not two.turn()
    assert place.head() == (1, 3)
    one.leave()
    settle(two)
    assert place.gaps() == [(2, 2), (4, 4)]
    place.road.execute("UPDATE sequence_keeper SET lease_until = now() - interval '1 second'")
    place.arrive(4)
    settle(one)
    assert place.gaps() == [(2, 2)]
    assert not two.turn()


def test_who_changes_gaps_makes_the_keeper_wait(place: Numbered) -> None:
    """A command that holds the row lets no number be taken in meanwhile; nothing is lost by it."""
    keeper = place.keeper("one")
    place.arrive(1, 3)
    with place.road.connection.transaction():
        place.road.execute("SELECT FROM sequence_keeper FOR UPDATE")
        assert not keeper.turn()
        assert place.head() is None
    settle(keeper)
    assert place.gaps() == [(2, 2)]


def test_a_keeper_that_is_frozen_within_its_transaction_does_not_hold_the_others_for_ever(
    place: Numbered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database ends its session; what it had taken in is taken in by the next one."""
    monkeypatch.setattr("sinks.sequence_keeper.FROZEN_SECONDS", 1)
    frozen, other = place.keeper("frozen"), place.keeper("other")
    place.arrive(1, 3)
    place.opened[0].execute("BEGIN")
    assert frozen.turn() is False
    assert place.head() is None
    other.turn()
    assert place.head() is None
    await_true(lambda: other.turn() or place.head() is not None, 15, "the frozen keeper's session to be ended")
    assert place.gaps() == [(2, 2)]
    with pytest.raises(psycopg.Error):
        frozen.turn()


def test_a_keeper_that_is_cut_off_in_any_turn_leaves_it_exact(place: Numbered) -> None:
    """Its session is ended again and again; each time another goes on, and in the end nothing is missing or doubled."""
    numbers = random.Random(7).sample(range(1, 400), 300)
    place.arrive(0)
    settle(place.keeper("first"))
    for start in range(0, 300, 20):
        part = numbers[start : start + 20]
        place.arrive(*part[:10], partition=start % 4)
        for number in part[10:]:
            place.set_aside(number)
        keeper = place.keeper(f"keeper-{start}")
        place.road.execute("UPDATE sequence_keeper SET lease_until = '-infinity'")
        # Its transaction writes the gaps and then meets a session that was ended: nothing of the turn may stay.
        place.road.execute(
            "CREATE OR REPLACE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'"
        )
        place.road.execute("CREATE TRIGGER cut AFTER INSERT OR UPDATE ON sequence_sources EXECUTE FUNCTION cut()")
        with pytest.raises(psycopg.OperationalError):
            settle(keeper)
        place.road.execute("DROP TRIGGER cut ON sequence_sources")
        settle(place.keeper(f"keeper-{start}-again"))
        assert place.gaps() == missing(0, [0, *numbers[: start + 20]])
