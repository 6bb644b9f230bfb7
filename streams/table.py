"""The table `objects`: object id -> what the guard remembers, kept by Faust and rebuilt from its changelog."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from faust.types import TP

from streams.faust_stores import enter_event, remember_partition
from streams.guard import Seen, decode, encode
from streams.plan import Change, Outgoing
from tallyhook.logs import logger

TABLE = "objects"
ROCKSDB_OPTIONS: Mapping[str, int] = {"block_cache_size": 64 << 20, "write_buffer_size": 16 << 20}
"""Bytes a partition: by default the cache takes two gibibytes, and each of up to three write buffers 64 MiB."""

log = logger(__name__)


class ObjectTable:
    """Reads and writes the states of objects inside of a batch.

    Args:
        table: the Faust table; its changelog is written by the agent, not by Faust, so that a write is known to be
            durable before the local store has it.
    """

    def __init__(self, table: Any) -> None:
        self._table = table

    @property
    def changelog_topic(self) -> str:
        """The topic that the table is rebuilt from."""
        name: str = self._table.changelog_topic_name
        return name

    def recall(self, event: Any) -> Seen | None:
        """What is known of an event's object; None for a new one, and for bytes that cannot be read.

        A lost state only makes a verdict less exact: the sink judges by its own rows.
        """
        enter_event(event)
        raw = self._table.data.get(event.message.key)
        if raw is None:
            return None
        try:
            return decode(raw)
        except msgspec.DecodeError as failure:
            log.warning("state cannot be read, object counts as new", object=event.message.key, failure=str(failure))
            return None

    def changelog_records(self, changes: Mapping[bytes, Change]) -> list[Outgoing]:
        """One record a changed object, for the partition the object lives in."""
        topic = self.changelog_topic
        return [
            Outgoing(topic, key, encode(change.seen), [], change.cause.partition) for key, change in changes.items()
        ]

    def store(self, confirmed: Sequence[Outgoing], events: Mapping[bytes, Any], offsets: Mapping[int, int]) -> None:
        """Writes states that the changelog has confirmed.

        Args:
            confirmed: records of `changelog_records`.
            events: an event of each object.
            offsets: the highest offset the changelog gave, by partition.
        """
        store, topic = self._table.data, self.changelog_topic
        for record in confirmed:
            key = record.key or b""
            event = events[key]
            enter_event(event)
            store[key] = record.value
            remember_partition(store, key, event.message.partition)
        for partition, offset in offsets.items():
            store.set_persisted_offset(TP(topic, partition), offset)
