"""The inside of Faust's two stores: a key's partition, a walk over all keys in steps, and the drop of one.

Faust offers none of these: its iteration over a store cannot be left and taken up again, and its deletion searches
every partition.
"""

import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import faust
from faust.stores import memory
from faust.streams import _current_event
from faust.types import TP


class Entry(NamedTuple):
    """One object's state as the store holds it.

    Args:
        partition: of the changelog, which is that of `events`.
        key: the object id.
        value: the encoded state.
    """

    partition: int
    key: bytes
    value: bytes


class WalkedTable(faust.Table):  # type: ignore[misc]  # Faust has no types
    """A table whose memory store can be walked: the key that was looked at goes to the end.

    A plain dict can be entered only at its beginning, and its iterators end when a batch adds a key.
    """

    def _new_store(self) -> Any:
        store = super()._new_store()
        if isinstance(store, memory.Store):
            store.data = OrderedDict()
        return store


class StoreWalk:
    """Goes round and round over the keys of this worker's partitions; keeps no keys but the one it stands at.

    To be called from the agent's own task, between batches.

    Args:
        app: the Faust app.
        table: the Faust table, a `WalkedTable`.
    """

    def __init__(self, app: Any, table: Any) -> None:
        self._app, self._table = app, table
        self._partition, self._from_key = -1, b""

    def generation(self) -> int | None:
        """Which assignment of partitions holds; None while it changes, or while a table is being recovered."""
        app = self._app
        settled = app.flow_control.is_active() and not app.rebalancing and app.tables.actives_ready
        return int(app.consumer_generation_id) if settled and not app.tables.recovery.in_recovery else None

    def following(self, most: int) -> list[Entry]:
        """The next entries of the walk, none of them twice; over at most so many keys."""
        store, topic = self._table.data, self._table.changelog_topic_name
        owned = {tp.partition for tp in self._app.assignor.assigned_actives() if tp.topic == topic}
        if isinstance(store, memory.Store):
            return list(_rotate(store, owned, most))
        return list(self._walk_on(store, sorted(owned), most))

    def _walk_on(self, store: Any, owned: list[int], most: int) -> Iterator[Entry]:
        # From where the last step ended, through the partitions after it, and round to the beginning.
        rest = [number for number in owned if number >= self._partition]
        for partition in rest + owned[: len(owned) - len(rest)]:
            if partition != self._partition:
                self._partition, self._from_key = partition, b""
            # The iterator must not outlive the step: it would keep the database open after a rebalance.
            found = list(islice(store._db_for_partition(partition).items(from_key=self._from_key or None), most))
            for key, value in found:
                if key != store.offset_key:
                    yield Entry(partition, key, value)
            if len(found) == most:
                self._from_key = found[-1][0] + b"\0"  # the smallest key that is larger
                return
            most -= len(found)
            self._partition, self._from_key = partition + 1, b""

    def drop(self, entries: Iterable[Entry], offsets: dict[int, int]) -> None:
        """Removes entries whose tombstones the changelog has confirmed.

        Args:
            entries: as `following` gave them.
            offsets: the highest offset of their tombstones, by partition.
        """
        store, topic = self._table.data, self._table.changelog_topic_name
        for partition, key, _ in entries:
            if isinstance(store, memory.Store):
                store.data.pop(key, None)
                store._key_partition.pop(key, None)
            else:
                store._db_for_partition(partition).delete(key)
        for partition, offset in offsets.items():
            store.set_persisted_offset(TP(topic, partition), offset)


def _rotate(store: Any, owned: set[int], most: int) -> Iterator[Entry]:
    data, owners = store.data, store._key_partition
    for _ in range(min(most, len(data))):
        key = next(iter(data))
        data.move_to_end(key)
        partition = owners.get(key)
        if partition in owned:
            yield Entry(partition, key, data[key])


def enter_event(event: Any) -> None:
    """Makes an event the current one, by which a store finds its partition (faust-streaming/faust#497)."""
    _current_event.set(weakref.ref(event))


def remember_partition(store: Any, key: bytes, partition: int) -> None:
    """Tells the memory store a key's partition, with which it goes; it only knows those from the changelog."""
    owners = getattr(store, "_key_partition", None)
    if owners is not None:
        owners[key] = partition
