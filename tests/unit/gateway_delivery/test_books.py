"""What the API tells as of a virtual moment: events, movements, objects, the balance."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from tallyhook.gateway.api.books import Books, ObjectKind, Page, UnknownId
from tallyhook.gateway.world.generate import generate
from tallyhook.gateway.world.model import World
from tests.unit.gateway_delivery.stepping import START, event, world_of

LATE = START + timedelta(days=3650)


@pytest.fixture(scope="module")
def world() -> World:
    """One with every kind of object."""
    return generate(11, 80, withhold=5)


def data(page: Page) -> list[dict[str, Any]]:
    """The items of a page, read from the JSON that a client gets."""
    said = json.loads(page.as_json())
    assert said["has_more"] == page.has_more
    items: list[dict[str, Any]] = said["data"]
    return items


def middle(world: World) -> datetime:
    """When half of the events are made."""
    return world.events[len(world.events) // 2].created_at


def test_events_come_by_sequence_from_the_one_behind_the_given() -> None:
    """The last page says that there is no more; what lies in the future is not told."""
    books = Books(world_of(event(number) for number in range(1, 11)))
    page = books.events(3, 4, LATE)
    assert [item["sequence"] for item in data(page)] == [4, 5, 6, 7]
    assert page.has_more
    assert [item["sequence"] for item in data(books.events(7, 4, LATE))] == [8, 9, 10]
    assert not books.events(7, 3, LATE).has_more
    soon = books.events(0, 100, event(4).created_at)
    assert [item["sequence"] for item in data(soon)] == [1, 2, 3, 4]
    assert not soon.has_more
    assert data(books.events(99, 100, LATE)) == []


def test_following_the_pages_lists_every_event_once_with_its_signed_bytes(world: World) -> None:
    """Those that were never delivered, too."""
    books, since = Books(world), -1
    found: list[bytes] = []
    while (page := books.events(since, 7, LATE)).items:
        found += page.items
        since = json.loads(page.items[-1])["sequence"]
    assert not page.has_more
    assert found == [made.body for made in world.events]
    assert sum(made.never_delivered for made in world.events) == 5


def test_types_that_the_merchant_does_not_want_are_not_listed(world: World) -> None:
    """A gap that the list does not close."""
    books = Books(world, {"withdrawal.matched"})
    types = {json.loads(item)["type"] for item in books.events(-1, 100_000, LATE).items}
    assert types == {made.type for made in world.events} - {"withdrawal.matched"}


def test_movements_add_up_to_the_balance_at_any_moment(world: World) -> None:
    """A bucket gains what comes to it and loses what goes from it."""
    books = Books(world)
    for moment in (START, middle(world), LATE):
        sums: dict[str, int] = {}
        for moved in data(books.transactions(None, 100_000, moment)):
            for bucket, sign in ((moved["bucket_to"], 1), (moved["bucket_from"], -1)):
                if bucket is not None:
                    sums[bucket] = sums.get(bucket, 0) + sign * moved["amount_minor"]
        told = dict(books.balance(moment))
        assert (told.pop("object"), told.pop("currency")) == ("balance", "THB")
        assert told == {name: sums.get(name.removesuffix("_minor"), 0) for name in told}
        assert set(sums) <= {name.removesuffix("_minor") for name in told}


def test_movements_go_on_behind_the_given_one(world: World) -> None:
    """In order of creation; an id that is not known at the moment is an error."""
    books = Books(world)
    ids = [moved.id for moved in world.transactions]
    assert [moved["id"] for moved in data(books.transactions(ids[2], 3, LATE))] == ids[3:6]
    assert data(books.transactions(ids[-1], 3, LATE)) == []
    with pytest.raises(UnknownId):
        books.transactions("btxn_nowhere", 3, LATE)
    with pytest.raises(UnknownId):
        books.transactions(ids[-1], 3, START)


@pytest.mark.parametrize("kind", ["deposit_order", "withdrawal_order"])
def test_objects_are_as_they_were_at_the_moment(world: World, kind: ObjectKind) -> None:
    """The newest whole snapshot until then; lists in order of creation; what is not yet made is unknown."""
    books, moment = Books(world), middle(world)
    mine = [one for one in world.objects.values() if one.kind == kind]
    seen: list[str] = []
    cursor = None
    while items := data(books.objects(kind, cursor, 4, moment)):
        seen += [item["id"] for item in items]
        cursor = seen[-1]
    made = [one for one in mine if one.created_at <= moment]
    assert set(seen) == {one.id for one in made}
    assert [world.objects[found].created_at for found in seen] == sorted(one.created_at for one in made)
    for one in mine:
        for state, following in zip(one.states, [*one.states[1:], None], strict=True):
            just_before_next = following.at - timedelta(milliseconds=1) if following is not None else LATE
            for at in (state.at, max(state.at, just_before_next)):
                told = json.loads(books.object(kind, one.id, at))
                if following is None or following.at != state.at:
                    assert (told["id"], told["version"]) == (one.id, state.version)
        with pytest.raises(UnknownId):
            books.object(kind, one.id, one.created_at - timedelta(milliseconds=1))


def test_an_id_of_the_other_kind_is_unknown(world: World) -> None:
    """A withdrawal is no deposit, neither by its id nor as a place to go on from."""
    books = Books(world)
    withdrawal = next(one.id for one in world.objects.values() if one.kind == "withdrawal_order")
    with pytest.raises(UnknownId):
        books.object("deposit_order", withdrawal, LATE)
    with pytest.raises(UnknownId):
        books.objects("deposit_order", withdrawal, 10, LATE)
