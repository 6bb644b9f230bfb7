"""The walk over either store meets every key of the own partitions, however the store changes meanwhile."""

import gc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faust
import pytest
from faust.types import TP

from streams.faust_stores import StoreWalk, WalkedTable, enter_event, remember_partition

PARTITIONS = 4
STEP = 7


class Kept:
    """A table of Faust's with its walk; owns all partitions but the last."""

    def __init__(self, store: str, folder: Path) -> None:
        app = faust.App(
            "walk", store=f"{store}://", datadir=str(folder), Table=WalkedTable, key_serializer="raw",
            value_serializer="raw", autodiscover=False,
        )  # fmt: skip
        self.table: Any = app.Table("objects", partitions=PARTITIONS, key_type=bytes, value_type=bytes)
        owned = {TP(self.table.changelog_topic_name, number) for number in range(PARTITIONS - 1)}
        self.app = SimpleNamespace(
            assignor=SimpleNamespace(assigned_actives=lambda: owned),
            flow_control=SimpleNamespace(is_active=lambda: True),
            tables=SimpleNamespace(actives_ready=True, recovery=SimpleNamespace(in_recovery=False)),
            rebalancing=False,
            consumer_generation_id=5,
        )
        self.walk = StoreWalk(self.app, self.table)

    def put(self, key: bytes, partition: int) -> None:
        """As a batch does."""
        event = SimpleEvent(SimpleNamespace(partition=partition, key=key))
        enter_event(event)
        self.table.data[key] = b"v" + key
        remember_partition(self.table.data, key, partition)

    def round(self, steps: int) -> list[tuple[int, bytes]]:
        """What so many steps show."""
        return [(entry.partition, entry.key) for _ in range(steps) for entry in self.walk.following(STEP)]


class SimpleEvent:
    """An event as the store looks at it."""

    def __init__(self, message: SimpleNamespace) -> None:
        self.message = message


@pytest.fixture(params=["memory", "rocksdb"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    """Either store."""
    made = Kept(request.param, tmp_path)
    yield made
    getattr(made.table.data, "_dbs", {}).clear()
    gc.collect()


def test_every_key_of_the_own_partitions_is_met_in_a_round(kept: Kept) -> None:
    """None is left out, none is another worker's, and the round begins anew."""
    keys = [(number % PARTITIONS, b"key%03d" % number) for number in range(100)]
    for partition, key in keys:
        kept.put(key, partition)
    kept.walk.drop([], {0: 9})  # the store's own record of its offset is no key
    own = {(partition, key) for partition, key in keys if partition < PARTITIONS - 1}
    for _ in range(3):
        assert own == set(kept.round(-(-100 // STEP) + 2))
    assert all(len(kept.walk.following(STEP)) <= STEP for _ in range(30))


def test_keys_that_come_and_go_meanwhile_hide_no_other(kept: Kept) -> None:
    """Batches write between the steps, and what is dropped is gone from the store."""
    for number in range(60):
        kept.put(b"key%03d" % number, number % 2)
    seen: set[bytes] = set()
    for step in range(40):
        kept.put(b"a%03d" % step, step % 3)
        entries = kept.walk.following(STEP)
        seen |= {entry.key for entry in entries}
        kept.walk.drop([entry for entry in entries if entry.key.endswith(b"7")], {0: step})
    assert {b"key%03d" % number for number in range(60)} <= seen
    enter_event(gone := SimpleEvent(SimpleNamespace(partition=1, key=b"key007")))
    assert kept.table.data.get(b"key007") is None
    assert (1, b"key007") not in kept.round(40)
    assert gone.message.partition == 1


def test_an_empty_store_ends_the_step(kept: Kept) -> None:
    """There is nothing to wait for."""
    assert kept.walk.following(STEP) == []


@pytest.mark.parametrize("unsettled", ["rebalancing", "recovering", "not ready", "suspended"])
def test_there_is_no_generation_while_partitions_move(kept: Kept, unsettled: str) -> None:
    """Then nobody knows whose the keys are."""
    assert kept.walk.generation() == 5
    kept.app.rebalancing = unsettled == "rebalancing"
    kept.app.tables.recovery.in_recovery = unsettled == "recovering"
    kept.app.tables.actives_ready = unsettled != "not ready"
    kept.app.flow_control.is_active = lambda: unsettled != "suspended"
    assert kept.walk.generation() is None
