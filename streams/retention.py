"""Retention of the table `objects`: what nobody has touched for long is tombstoned in the changelog, then dropped."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from streams.faust_stores import Entry
from streams.guard import decode
from streams.plan import Outgoing
from tallyhook.clock import Clock
from tallyhook.logs import logger
from tallyhook.metrics import Metrics

SECONDS_A_DAY = 86_400

STEP_KEYS = 500
"""Looked at in one step: about a millisecond, and at most so many tombstones to await."""

STEP_SECONDS = 1.0
"""Between two steps; a million objects are walked in half an hour, and a day is what the walk is for."""

log = logger(__name__)


class Walk(Protocol):
    """The keys of the partitions that this worker owns."""

    def generation(self) -> int | None:
        """Which assignment holds; None while it changes."""
        ...

    def following(self, most: int) -> list[Entry]:
        """The next entries."""
        ...

    def drop(self, entries: Sequence[Entry], offsets: dict[int, int]) -> None:
        """Removes them from the local store."""
        ...


class Tombstones(Protocol):
    """Where tombstones go: the publisher."""

    async def publish(self, batch: Sequence[Outgoing]) -> dict[int, int]:
        """Returns once all are durable: the highest offset by partition."""
        ...


class Retention:
    """Forgets untouched objects, a step at a time, in the agent's own task between two batches.

    So no batch has the same object in hand. When a crash or a rebalance comes between tombstone and drop, the next
    owner replays the tombstone; what a store still has without its record in the changelog is met by the next walk.
    A forgotten object that is delivered again counts as new here; the sink judges by its own rows.

    Args:
        walk: over the store.
        changelog_topic: of the table.
        tombstones: publishes.
        clock: for the day, and for the pace.
        metrics: forgotten objects are counted there.
        retention_days: an object stays for so many whole days after the day it was touched last.
    """

    def __init__(
        self,
        walk: Walk,
        changelog_topic: str,
        tombstones: Tombstones,
        clock: Clock,
        metrics: Metrics,
        *,
        retention_days: int,
    ) -> None:
        self._walk, self._topic, self._tombstones = walk, changelog_topic, tombstones
        self._clock, self._metrics, self._retention_days = clock, metrics, retention_days
        self._next_step_at = clock.monotonic_seconds()

    async def step(self) -> None:
        """Looks at the next keys, if a second has passed since the last step and the partitions are settled."""
        now = self._clock.monotonic_seconds()
        generation = self._walk.generation()
        if now < self._next_step_at or generation is None:
            return
        self._next_step_at = now + STEP_SECONDS
        oldest_kept = int(self._clock.now().timestamp()) // SECONDS_A_DAY - self._retention_days
        expired = [entry for entry in self._walk.following(STEP_KEYS) if _touched_before(entry, oldest_kept)]
        if not expired:
            return
        offsets = await self._tombstones.publish(
            [Outgoing(self._topic, key, None, [], partition) for partition, key, _ in expired]
        )
        self._metrics.counter("tallyhook_stream_forgotten_objects_total").inc(len(expired))
        if self._walk.generation() == generation:  # else the store may be another's already, or in recovery
            self._walk.drop(expired, offsets)


def _touched_before(entry: Entry, day: int) -> bool:
    try:
        return decode(entry.value).touched_day < day
    except msgspec.DecodeError as failure:
        # Nobody knows its age. It is overwritten when its object comes again.
        log.warning("state cannot be read, it is kept", object=entry.key, failure=str(failure))
        return False
