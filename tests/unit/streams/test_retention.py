"""What is forgotten, when, and in which order."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from streams.faust_stores import Entry
from streams.guard import Seen, encode
from streams.plan import Outgoing
from streams.retention import STEP_KEYS, STEP_SECONDS, Retention
from tallyhook.metrics import Metrics

TODAY = 20_000
DAYS = 40


class HandClock:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        """Noon of the day."""
        return datetime.fromtimestamp(TODAY * 86_400 + 43_200, UTC) + timedelta(seconds=self.seconds)

    def monotonic_seconds(self) -> float:
        """As it was turned."""
        return self.seconds


class Store:
    """Entries, and the changelog beside them; notes what happens in which order."""

    def __init__(self, touched: dict[bytes, int]) -> None:
        self.entries = {key: Entry(3, key, encode(Seen(1, "open", (1,), day))) for key, day in touched.items()}
        self.assignment: int | None = 1
        self.moves_while_publishing = False
        self.happened: list[tuple[str, set[bytes]]] = []
        self.asked = 0

    def generation(self) -> int | None:
        """The assignment."""
        return self.assignment

    def following(self, most: int) -> list[Entry]:
        """The first entries: this walk always begins anew."""
        self.asked += 1
        return list(self.entries.values())[:most]

    def drop(self, entries: Sequence[Entry], offsets: dict[int, int]) -> None:
        """Forgets them."""
        assert offsets == {3: 77}
        self.happened.append(("dropped", {entry.key for entry in entries}))
        for entry in entries:
            del self.entries[entry.key]

    async def publish(self, batch: Sequence[Outgoing]) -> dict[int, int]:
        """Takes tombstones."""
        assert {(record.topic, record.value, record.partition) for record in batch} == {("changelog", None, 3)}
        self.happened.append(("tombstoned", {record.key or b"" for record in batch}))
        if self.moves_while_publishing:
            self.assignment = 2
        return {3: 77}


def retention(store: Store, clock: HandClock) -> Retention:
    """Of that store."""
    return Retention(store, "changelog", store, clock, Metrics(), retention_days=DAYS)


def test_what_is_untouched_for_longer_than_the_retention_goes_changelog_first() -> None:
    """An object stays through the fortieth day, and one touched in the future stays, too."""
    touched = {b"old": TODAY - DAYS - 1, b"edge": TODAY - DAYS, b"new": TODAY, b"ahead": TODAY + 9}
    store = Store(touched)
    asyncio.run(retention(store, HandClock()).step())
    assert store.happened == [("tombstoned", {b"old"}), ("dropped", {b"old"})]
    assert set(store.entries) == {b"edge", b"new", b"ahead"}


def test_the_store_is_left_alone_when_the_partitions_moved_meanwhile() -> None:
    """The tombstones stand in the changelog; whoever owns the partition now has them from there."""
    store = Store({b"old": 0})
    store.moves_while_publishing = True
    asyncio.run(retention(store, HandClock()).step())
    assert store.happened == [("tombstoned", {b"old"})]
    assert set(store.entries) == {b"old"}


def test_nothing_is_looked_at_while_partitions_move_or_are_recovered() -> None:
    """Who does not know what it owns forgets nothing."""
    store = Store({b"old": 0})
    store.assignment = None
    asyncio.run(retention(store, HandClock()).step())
    assert (store.asked, store.happened) == (0, [])


def test_steps_are_bounded_in_size_and_pace() -> None:
    """However many batches there are, there is one step a second, over so many keys."""
    store, clock = Store({b"%d" % number: 0 for number in range(STEP_KEYS + 1)}), HandClock()
    forgetting = retention(store, clock)

    async def many_batches() -> None:
        for _ in range(10):
            await forgetting.step()
        assert (store.asked, len(store.entries)) == (1, 1)
        clock.seconds += STEP_SECONDS
        await forgetting.step()

    asyncio.run(many_batches())
    assert (store.asked, len(store.entries)) == (2, 0)


def test_a_state_that_cannot_be_read_is_kept() -> None:
    """Its age is unknown."""
    store = Store({b"old": 0})
    store.entries[b"odd"] = Entry(3, b"odd", b"\xc1")
    asyncio.run(retention(store, HandClock()).step())
    assert set(store.entries) == {b"odd"}
