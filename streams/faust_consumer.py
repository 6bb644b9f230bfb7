"""The repaired Kafka consumer of Faust's app: commits with a note, and no record lost between fetch and agent.

Written against the versions that `faust_repairs` pins.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from aiokafka.errors import CommitFailedError, IllegalStateError
from aiokafka.structs import OffsetAndMetadata
from faust.transport.consumer import ensure_TP
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from tallyhook.failpoints import reach
from tallyhook.logs import logger

FETCH_WAIT_MS = 500
GETMANY_SECONDS = 1.0

log = logger(__name__)


class NotingThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]  # Faust has no types
    """Writes the topic's id beside each committed offset, so that a topic made anew under the same name is noticed.

    It also counts its seeks, and can take back what was fetched; all of it runs in the one thread that moves positions.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.seeks = 0
        super().__init__(*args, **kwargs)

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """As in the stock class."""
        found: Mapping[TP, int] = await self.call_thread(self._seek_to_committed)
        return found

    async def _seek_to_committed(self) -> Any:
        found = await self._ensure_consumer().seek_to_committed()
        self.seeks += 1
        return found

    async def _seek_wait(self, consumer: Any, partitions: Mapping[TP, int]) -> None:
        self.seeks += 1  # the stock method seeks before it first waits
        await super()._seek_wait(consumer, partitions)

    async def _fetch_records(self, *args: Any, **kwargs: Any) -> tuple[int, Mapping[TP, list[Any]]]:
        records = await super()._fetch_records(*args, **kwargs)
        return self.seeks, records

    async def take_back(self, offsets: Mapping[TP, int]) -> None:
        """Positions that lie beyond these offsets return to them; what lies before them, or was lost, stays."""
        consumer = self._ensure_consumer()
        assignment = consumer._subscription.subscription.assignment
        for tp, offset in offsets.items():
            found = driver.ensure_aiokafka_TP(tp)
            state = assignment.state_value(found) if found in assignment.tps else None
            if state is not None and state.has_valid_position and state.position > offset:
                consumer.seek(found, offset)

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # Faust has no setting for these two.
        consumer._fetch_min_bytes = self.app.fetch_min_bytes
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        return consumer

    async def _commit(self, offsets: Mapping[Any, int]) -> bool:
        owned, notes = self.assignment(), self.app.commit_notes
        wanted = {
            driver.ensure_aiokafka_TP(tp): OffsetAndMetadata(offset, notes.get(tp.topic, ""))
            for tp, offset in offsets.items()
            if tp in owned
        }
        reach("stream.before_commit")
        try:
            await self._ensure_consumer().commit(wanted)
        except CommitFailedError as failure:
            # Another generation owns them now: it starts from the last commit, so nothing is lost.
            log.info("commit refused by the group", failure=str(failure))
            return False
        except Exception as failure:  # noqa: BLE001  whatever it is, the process must not go on as if it had committed
            log.error("commit failed", failure=repr(failure))  # noqa: TRY400  the crash logs the stack
            await self.crash(failure)
            return False
        reach("stream.committed")
        return True


class GaplessConsumer(driver.Consumer):  # type: ignore[misc]  # Faust has no types
    """Hands each partition's records to the agent without a hole, from its committed offset on.

    Four repairs in one loop:
    - Stock `_drain_messages` wraps every record in `wait_first`, which is two tasks and a wait each; awaiting the
      callback alone halves the cost. While the flow is suspended nothing is handed over.
    - A fetch under way while partitions are paused, resumed or sought can bring records that are then thrown away (also
      #596), though the position lies behind them already. The agent's would be missing, and a recovery would wait for
      ever for its changelog. Whatever is not handed over is taken back: the position returns to it.
    - An offset of the agent's that does not follow is fetched again from where the hole starts; only what the broker
      really does not have counts as a hole (transaction markers).
    - Stock `perform_seek` leaves partitions without a commit where they are. Here they go back to their beginning.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.starts: dict[TP, int] = {}  # where this generation began, by partition
        self._next: dict[TP, int] = {}  # the offset to hand over next
        self._suspects: dict[TP, tuple[int, int]] = {}
        self.bridges: dict[tuple[TP, int], int] = {}  # confirmed holes: where one starts, and what follows it
        self._fetched_after_seeks = 0
        super().__init__(*args, **kwargs)

    def _new_consumer_thread(self) -> Any:
        return NotingThread(self, loop=self.loop, beacon=self.beacon)

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Forgets the positions: nothing is handed over until the next seek."""
        for known in (self.starts, self._next, self._suspects, self.bridges):
            known.clear()
        # A partition that was full when it was revoked would be fetched during the next recovery.
        self._buffered_partitions.clear()
        await super().on_partitions_revoked(revoked)

    async def perform_seek(self) -> None:
        """Back to the committed offsets; without one, to the beginning."""
        await super().perform_seek()
        owned = {tp for tp in self.assignment() if tp.topic in self.app.topics.acking_topics}
        found = {tp: self._read_offset[tp] for tp in owned}
        unread = [tp for tp in owned if not found[tp]]
        if unread:
            lows = {ensure_TP(tp): low for tp, low in (await self.earliest_offsets(*unread)).items()}
            await self.seek_wait({tp: lows[tp] for tp in unread})
            found |= {tp: lows[tp] for tp in unread}
        for tp, offset in found.items():
            self.starts.setdefault(tp, offset)
            self._next[tp] = offset

    async def _drain_messages(self, fetcher: Any) -> None:
        try:
            while not (self._stopped.is_set() or fetcher._stopped.is_set()):
                await self.sleep(0)
                await self._drain_once()
        except (*self.consumer_stopped_errors, asyncio.CancelledError):
            if not self.transport.app.should_stop:
                raise

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:  # noqa: ASYNC109  as in Faust
        self._fetched_after_seeks, records = await self._thread.getmany(active_partitions, timeout)
        return records

    async def _drain_once(self) -> None:
        records, active = await self._wait_next_records(GETMANY_SECONDS)
        if not records or self.should_stop:
            return
        callback, following, ordered = self.callback, self._next, self.app.topics.acking_topics
        generation, moved = self.app.consumer_generation_id, 0
        unread: dict[TP, int] = {}
        for tp, record in self.scheduler.iterate(records):
            moved += 1
            if not moved % 100:
                await asyncio.sleep(0)
            offset = record.offset
            if tp in unread or not self._may_pass(tp, active, generation):
                unread.setdefault(tp, offset)
                continue
            message = self._to_message(tp, record)
            if message.topic not in ordered:
                await callback(message)
                continue
            expected = following.get(tp)
            if expected is None or offset < expected:
                continue
            if offset > expected and not await self._is_bridged(tp, expected, offset):
                unread[tp] = offset
                continue
            await callback(message)
            # A seek may have happened meanwhile: then its position stands.
            if following.get(tp) == expected:
                following[tp] = offset + 1
        if unread:
            log.info("fetched while positions changed, fetching again", partitions=len(unread))
            await self._thread.call_thread(self._thread.take_back, unread)

    def _may_pass(self, tp: TP, active: set[TP] | None, generation: int) -> bool:
        return (
            self._fetched_after_seeks == self._thread.seeks
            and generation == self.app.consumer_generation_id
            and not self.suspend_flow.is_set()
            and (active is None or tp in active or tp in self._buffered_partitions)
        )

    async def _is_bridged(self, tp: TP, expected: int, offset: int) -> bool:
        """Whether nothing lies between two offsets; the first time it is asked, the records are fetched again."""
        if self._suspects.get(tp) != (expected, offset):
            self._suspects[tp] = (expected, offset)
            log.info("offsets do not follow, fetching again", partition=tp.partition, expected=expected, found=offset)
            try:
                await self.seek_wait({tp: expected})
            except IllegalStateError:  # revoked meanwhile
                self._next.pop(tp, None)
            return False
        lows = {ensure_TP(found): low for found, low in (await self.earliest_offsets(tp)).items()}
        if lows[tp] > expected:
            self.app.on_position_lost(
                f"{tp.topic}[{tp.partition}]: position {expected} is below the earliest offset {lows[tp]}"
            )
        await self._add_gap(tp, expected, offset - 1)
        self.bridges[tp, expected] = offset
        return True
