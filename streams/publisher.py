"""Publishes batches through librdkafka and waits once a batch for all delivery reports."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NoReturn

from confluent_kafka import KafkaError, Message

from streams.plan import Outgoing
from tallyhook.failpoints import Failpoint, reach
from tallyhook.kafka import PollThread, producer, unconfirmed, words
from tallyhook.settings import KafkaSettings

QUEUE_FULL_PAUSE_SECONDS = 0.005
MESSAGE_MARGIN_BYTES = 65_536  # headers and framing beside the largest body


class Confirmations:
    """Counts the delivery reports of one batch; one wake-up of the event loop when the last has come.

    Args:
        count: how many records the batch has.
        on_failure: ends the process; called from librdkafka's thread.
    """

    def __init__(self, count: int, on_failure: Callable[[str], NoReturn]) -> None:
        self._left, self._on_failure = count, on_failure
        self._loop = asyncio.get_running_loop()
        self.complete: asyncio.Future[None] = self._loop.create_future()
        self.offsets: dict[int, int] = {}

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """Takes one delivery report."""
        if (reason := unconfirmed(error, message)) is not None:
            self._on_failure(f"{message.topic()} did not take a record: {reason}")
        partition, offset = message.partition() or 0, message.offset() or 0
        if offset > self.offsets.get(partition, -1):
            self.offsets[partition] = offset
        self._left -= 1
        if not self._left:
            self._loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        if not self.complete.done():  # a cancelled batch no longer waits
            self.complete.set_result(None)


class Publisher:
    """An idempotent producer with its poll thread.

    Args:
        kafka: how to connect.
        linger_ms: how long a record waits for company.
        delivery_timeout_seconds: longer than a broker restart; after it the process ends, since nothing may be acked.
        most_body_bytes: the largest body the door lets in.
        on_failure: ends the process.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        *,
        linger_ms: float,
        delivery_timeout_seconds: float,
        most_body_bytes: int,
        on_failure: Callable[[str], NoReturn],
    ) -> None:
        self._on_failure = on_failure
        self._producer = producer(
            kafka,
            linger_ms=linger_ms,
            delivery_timeout_seconds=delivery_timeout_seconds,
            on_fatal=lambda error: on_failure(f"the producer can never send again: {words(error)}"),
            extra={"message.max.bytes": max(1_000_000, most_body_bytes + MESSAGE_MARGIN_BYTES)},
        )
        self._polling = PollThread(self._producer)
        self._polling.start()

    async def publish(self, batch: Sequence[Outgoing], sent: Failpoint | None = None) -> dict[int, int]:
        """Returns once every record is in all in-sync replicas: the highest offset by partition (of any topic).

        A record that is not confirmed within the delivery timeout ends the process.

        Args:
            sent: reached between the last record's sending and the first look for confirmations.
        """
        if not batch:
            return {}
        confirmations = Confirmations(len(batch), self._on_failure)
        for record in batch:
            while not self._enqueue(record, confirmations):  # noqa: ASYNC110  librdkafka tells nobody of room
                # Room comes with the reports of what was sent before, at the latest when these time out.
                await asyncio.sleep(QUEUE_FULL_PAUSE_SECONDS)
        if sent is not None:
            reach(sent)
        await confirmations.complete
        return confirmations.offsets

    def _enqueue(self, record: Outgoing, confirmations: Confirmations) -> bool:
        try:
            self._producer.produce(
                record.topic,
                key=record.key,
                value=record.value,
                headers=record.headers,
                partition=-1 if record.partition is None else record.partition,
                on_delivery=confirmations,
            )
        except BufferError:
            return False
        return True

    def close(self) -> None:
        """Stops the poll thread; nothing is under way any more when the agent has stopped."""
        self._producer.flush(1)
        self._polling.stop()
