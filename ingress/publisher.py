"""Durable or not: a record counts as stored once every in-sync replica has it."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message

from ingress.records import Record
from tallyhook import kafka
from tallyhook.errors import KafkaUnavailable
from tallyhook.failpoints import reach
from tallyhook.settings import KafkaSettings

_QUEUE_RETRY_SECONDS = 0.005
_BATCH_BYTES = 1 << 20


class NotConfirmed(KafkaUnavailable):
    """Kafka did not confirm a record in time, or refused it; the sender must repeat it."""


class Publisher:
    """Publishes records in the order of the calls and tells when they are durable.

    Made and used on one event loop; delivery reports come from a thread of their own and are handed over in batches.

    Args:
        loop: the loop that calls `publish`.
        linger_ms: how long a record waits for company.
        delivery_timeout_seconds: after this a record counts as not confirmed; it may be written yet.
        record_limit_bytes: largest batch and record that the topics take.
        on_fatal: called on the loop when nothing can be sent any more.
        queue_records: most records that wait in librdkafka.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        loop: asyncio.AbstractEventLoop,
        linger_ms: float,
        delivery_timeout_seconds: float,
        record_limit_bytes: int,
        on_fatal: Callable[[str], None],
        queue_records: int = 100_000,
    ) -> None:
        self._loop, self._delivery_timeout_seconds = loop, delivery_timeout_seconds
        self._on_fatal = on_fatal
        self._producer = kafka.producer(
            settings,
            linger_ms=linger_ms,
            delivery_timeout_seconds=delivery_timeout_seconds,
            on_fatal=lambda error: self._call(self._on_fatal, kafka.words(error)),
            extra={
                # The topic's limit is one of batches: a batch above it would fail with everything in it.
                "batch.size": min(_BATCH_BYTES, record_limit_bytes),
                "message.max.bytes": max(1000, record_limit_bytes),
                "queue.buffering.max.messages": queue_records,
            },
        )
        self._reports: list[tuple[asyncio.Future[None], str | None]] = []
        self._thread = kafka.PollThread(self._producer, after_poll=self._hand_over)
        self._unconfirmed: dict[asyncio.Future[None], float] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._queue: deque[tuple[Record, asyncio.Future[None]]] = deque()
        self._pump: asyncio.TimerHandle | None = None
        self.last_confirmed_at = self.last_failed_at = float("-inf")
        self._thread.start()

    @property
    def alive(self) -> bool:
        """False when the thread that serves the delivery reports has ended: no record can be confirmed then."""
        return self._thread.is_alive()

    @property
    def oldest_unconfirmed_seconds(self) -> float:
        """Age of the record that waits longest, 0 when none does."""
        now = self._loop.time()
        return now - next(iter(self._unconfirmed.values()), now)

    async def publish(self, record: Record) -> None:
        """Returns once the record is durable; raises NotConfirmed.

        The record takes its place in the order when this is called, before anything is awaited.
        """
        reach("ingress.before_publish")
        confirmed = self._loop.create_future()
        self._unconfirmed[confirmed] = self._loop.time()
        self._idle.clear()
        try:
            self._enqueue(record, confirmed)
            reach("ingress.published")
            async with asyncio.timeout(self._delivery_timeout_seconds):
                await confirmed
        except TimeoutError:
            self.last_failed_at = self._loop.time()
            raise NotConfirmed(f"no confirmation within {self._delivery_timeout_seconds:g} s") from None
        except NotConfirmed:
            self.last_failed_at = self._loop.time()
            raise
        finally:
            self._unconfirmed.pop(confirmed, None)
            if not self._unconfirmed:
                self._idle.set()
        reach("ingress.confirmed")
        self.last_confirmed_at = self._loop.time()

    async def wait_idle(self) -> None:
        """Returns when nobody waits for a record; each has its deadline, so this ends once no more are given."""
        await self._idle.wait()

    def probe(self, topic: str, timeout_seconds: float) -> None:
        """Asks the cluster for a topic; raises KafkaUnavailable. Blocks: call it from another thread."""
        try:
            found = self._producer.list_topics(topic, timeout=timeout_seconds).topics[topic]
        except KafkaException as failure:
            raise KafkaUnavailable(f"Kafka does not answer: {kafka.words(failure.args[0])}") from failure
        if found.error is not None:
            raise KafkaUnavailable(f"topic {topic}: {kafka.words(found.error)}; see `tallyhook topics show`")

    def close(self, timeout_seconds: float) -> int:
        """Waits for what is under way and ends the thread; gives the records left unconfirmed. Blocks."""
        left: int = self._producer.flush(timeout_seconds)
        self._thread.stop()
        self._hand_over()
        return left

    def _enqueue(self, record: Record, confirmed: asyncio.Future[None]) -> None:
        # While one record waits for room, later ones wait behind it: overtaking would break an object's order.
        if self._queue or not self._produce(record, confirmed):
            self._queue.append((record, confirmed))
            if self._pump is None:
                self._pump = self._loop.call_later(_QUEUE_RETRY_SECONDS, self._drain_queue)

    def _drain_queue(self) -> None:
        self._pump = None
        while self._queue:
            record, confirmed = self._queue[0]
            # A record whose sender was told 503 is not sent any more.
            if not confirmed.done() and not self._produce(record, confirmed):
                self._pump = self._loop.call_later(_QUEUE_RETRY_SECONDS, self._drain_queue)
                return
            self._queue.popleft()

    def _produce(self, record: Record, confirmed: asyncio.Future[None]) -> bool:
        """Hands a record to librdkafka; false when its queue is full."""
        try:
            self._producer.produce(
                record.topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                on_delivery=partial(self._reported, confirmed),
            )
        except BufferError:
            return False
        except KafkaException as failure:
            confirmed.set_exception(NotConfirmed(f"{record.topic}: {kafka.words(failure.args[0])}"))
        return True

    def _reported(self, confirmed: asyncio.Future[None], error: KafkaError | None, message: Message) -> None:
        self._reports.append((confirmed, kafka.unconfirmed(error, message)))

    def _hand_over(self) -> None:
        reports, self._reports = self._reports, []
        if reports:
            self._call(_resolve, reports)

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        # After the loop has ended nobody waits for an answer.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)


def _resolve(reports: list[tuple[asyncio.Future[None], str | None]]) -> None:
    for confirmed, reason in reports:
        if confirmed.done():
            continue
        if reason is None:
            confirmed.set_result(None)
        else:
            confirmed.set_exception(NotConfirmed(reason))
