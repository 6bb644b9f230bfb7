"""Every repair of Faust's app, each with the upstream issue; written against the pinned versions below.

The agent's batches stand in `faust_batches`, the stores in `faust_stores`, aiokafka's headers in `faust_headers`.

Faust and aiokafka carry no types that can be relied on: this is the module that meets their inside. What each repair
cures is proved by the integration tests; a unit test fails when another version is installed.
"""

import asyncio
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, NoReturn

import faust
from aiokafka.errors import CommitFailedError, IllegalStateError
from aiokafka.structs import OffsetAndMetadata
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport.consumer import ensure_TP
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from streams import faust_headers
from tallyhook.failpoints import reach
from tallyhook.logs import logger

PINNED_VERSIONS: Mapping[str, str] = {"faust-streaming": "0.15.3", "aiokafka": "0.14.0", "mode-streaming": "0.7.1"}
FETCH_WAIT_MS = 500

log = logger(__name__)


def unexpected_versions() -> list[str]:
    """Installed versions that these repairs were not written against; empty when all is as it should be."""
    found = ((name, version(name), wanted) for name, wanted in PINNED_VERSIONS.items())
    return [f"{name} {installed} (written for {wanted})" for name, installed, wanted in found if installed != wanted]


class SafeRecovery(Recovery):  # type: ignore[misc]  # Faust has no types
    """Stops the flow before recovery ends (faust-streaming/faust#596).

    Stock recovery resumes the partitions, waits for a seek, and then `flow_control.resume()` clears the agents' queues:
    events that got in between are gone. Nothing may enter the queues before they are cleared.
    """

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """Holds back every record until the stock method resumes the flow."""
        self.app.flow_control.suspend()
        self.app.consumer.stop_flow()
        await super().on_recovery_completed(generation_id)


class SafeTableManager(TableManager):  # type: ignore[misc]  # Faust has no types
    """The stock table manager with `SafeRecovery`."""

    @property
    def recovery(self) -> Any:
        """As in the stock class."""
        if self._recovery is None:  # type: ignore[has-type]
            self._recovery = SafeRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery


class NotingThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]  # Faust has no types
    """Writes the topic's id beside each committed offset, so that a topic made anew under the same name is noticed."""

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

    Three repairs in one loop:
    - Stock `_drain_messages` wraps every record in `wait_first`, which is two tasks and a wait each; awaiting the
      callback alone halves the cost. While the flow is suspended nothing is handed over.
    - A fetch under way while partitions are paused, resumed or sought can bring records that are then thrown away (also
      #596). An offset that does not follow is fetched again from where the hole starts; only what the broker really
      does not have counts as a hole (transaction markers).
    - Stock `perform_seek` leaves partitions without a commit where they are. Here they go back to their beginning.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.starts: dict[TP, int] = {}  # where this generation began, by partition
        self._next: dict[TP, int] = {}  # the offset to hand over next
        self._suspects: dict[TP, tuple[int, int]] = {}
        self.bridges: dict[tuple[TP, int], int] = {}  # confirmed holes: where one starts, and what follows it
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

    async def _drain_once(self) -> None:
        callback, suspended, following = self.callback, self.suspend_flow.is_set, self._next
        ordered, moved = self.app.topics.acking_topics, 0
        sought: set[TP] = set()
        async for tp, message in self.getmany(timeout=1.0):
            moved += 1
            if not moved % 100:
                await asyncio.sleep(0)
            if suspended():
                return  # the seek at the end of the recovery fetches the rest again
            if message.topic not in ordered:
                await callback(message)
                continue
            offset, expected = message.offset, following.get(tp)
            if expected is None or tp in sought or offset < expected:
                continue
            if offset > expected and not await self._is_bridged(tp, expected, offset):
                sought.add(tp)
                continue
            await callback(message)
            # A seek may have happened meanwhile: then its position stands.
            if following.get(tp) == expected:
                following[tp] = offset + 1

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


class RepairedTransport(driver.Transport):  # type: ignore[misc]  # Faust has no types
    """The stock transport with `GaplessConsumer`."""

    Consumer = GaplessConsumer


class RepairedApp(faust.App):  # type: ignore[misc]  # Faust has no types
    """A Faust app with every repair.

    Args:
        commit_notes: what is written beside each committed offset, by topic.
        fetch_min_bytes: how much a broker gathers before it answers a fetch, for at most half a second.
        on_position_lost: ends the process when records were deleted before they were read.
    """

    def __init__(
        self,
        app_id: str,
        *,
        commit_notes: Mapping[str, str],
        fetch_min_bytes: int,
        on_position_lost: Callable[[str], NoReturn],
        **options: Any,
    ) -> None:
        faust_headers.read_any_name()
        self.commit_notes, self.fetch_min_bytes, self.on_position_lost = commit_notes, fetch_min_bytes, on_position_lost
        super().__init__(app_id, TableManager=SafeTableManager, **options)

    def _new_transport(self) -> Any:
        return RepairedTransport(self.conf.broker_consumer, self)


def coordination_ended(app: Any) -> bool:
    """Whether aiokafka's group coordination is over though the app is not stopping.

    It never joins again and nobody else notices. Seen when a bootstrap met a fenced broker, which names no brokers.
    """
    try:
        task = app.consumer._thread._consumer._coordinator._coordination_task
    except AttributeError:  # not started yet
        return False
    return bool(task is not None and task.done() and not app.should_stop)
