"""Publishes records and waits until Kafka has confirmed them; for commands, at a bounded rate."""

import threading
from collections.abc import Sequence
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from schemas.headers import Header
from tallyhook import kafka
from tallyhook.clock import Clock
from tallyhook.errors import KafkaUnavailable, TopicMismatch
from tallyhook.settings import Settings

DELIVERY_TIMEOUT_SECONDS = 30.0
STOP_SECONDS = 5.0
"""So long a stop waits for what is under way."""
NOT_SENT = "stopped before it was sent"
_OVERHEAD_BYTES = 65_536
_POLL_SECONDS = 0.1


class Publishable(Protocol):
    """A record and the topic it goes to."""

    @property
    def topic(self) -> str:
        """The topic."""

    @property
    def key(self) -> bytes | None:
        """The object's id, so that it goes where its other events went."""

    @property
    def value(self) -> bytes:
        """The bytes."""

    @property
    def headers(self) -> list[Header]:
        """The headers."""


class ConfirmedPublisher:
    """A producer with the door's partitioner.

    Args:
        rate_per_second: most records a second.
        stopping: once set, nothing more is sent, and what is under way is waited for.
    """

    def __init__(self, settings: Settings, *, rate_per_second: float, clock: Clock, stopping: threading.Event) -> None:
        self._settings, self._clock, self._stopping = settings, clock, stopping
        self._pause_seconds, self._due_seconds = 1.0 / rate_per_second, 0.0
        limit_bytes = settings.ingress.max_body_bytes + _OVERHEAD_BYTES
        self._client: Producer = kafka.producer(
            settings.kafka,
            linger_ms=5,
            delivery_timeout_seconds=DELIVERY_TIMEOUT_SECONDS,
            on_fatal=lambda _: None,  # Each record's report says it too.
            extra={"message.max.bytes": max(1_000_000, limit_bytes)},
        )

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has, 0 where there is none; raises KafkaUnavailable."""
        try:
            known = self._client.list_topics(timeout=self._settings.kafka.request_timeout_seconds).topics
        except KafkaException as failure:
            raise KafkaUnavailable(f"Kafka does not answer: {kafka.words(failure.args[0])}") from failure
        return len(known[topic].partitions) if topic in known else 0

    def demand(self, topic: str) -> None:
        """Raises TopicMismatch unless the topic has the partitions that keys were placed by."""
        found, wanted = self.partitions(topic), self._settings.installation.partitions
        if not found:
            raise TopicMismatch(f"topic {topic} does not exist: run `tallyhook topics apply`")
        if found != wanted:
            raise TopicMismatch(
                f"topic {topic} has {found} partitions, TALLYHOOK_PARTITIONS says {wanted}:"
                " a key would go to another partition than before"
            )

    def publish(self, records: Sequence[Publishable]) -> list[str]:
        """Sends the records in order; gives for each why it is not confirmed, or an empty text."""
        failures = [NOT_SENT] * len(records)
        for place, record in enumerate(records):
            self._wait_for_turn()
            if self._stopping.is_set():
                break
            self._send(place, record, failures)
        self._await_reports()
        return failures

    def _send(self, place: int, record: Publishable, failures: list[str]) -> None:
        failures[place] = f"no confirmation within {DELIVERY_TIMEOUT_SECONDS:g} s"

        def reported(error: KafkaError | None, message: Message) -> None:
            failures[place] = kafka.unconfirmed(error, message) or ""

        deadline = self._clock.monotonic_seconds() + DELIVERY_TIMEOUT_SECONDS
        while True:
            try:
                self._client.produce(
                    record.topic, record.value, record.key, headers=list(record.headers), on_delivery=reported
                )
            except BufferError:
                if self._clock.monotonic_seconds() > deadline:
                    return
                self._client.poll(_POLL_SECONDS)
            except KafkaException as failure:
                failures[place] = kafka.words(failure.args[0])
                return
            else:
                return

    def _wait_for_turn(self) -> None:
        now = self._clock.monotonic_seconds()
        self._due_seconds = max(self._due_seconds, now)
        while (left := self._due_seconds - now) > 0 and not self._stopping.is_set():
            self._client.poll(min(left, _POLL_SECONDS))
            now = self._clock.monotonic_seconds()
        self._due_seconds += self._pause_seconds

    def _await_reports(self) -> None:
        began = self._clock.monotonic_seconds()
        while self._client.flush(_POLL_SECONDS):
            patience = STOP_SECONDS if self._stopping.is_set() else DELIVERY_TIMEOUT_SECONDS + 1
            if self._clock.monotonic_seconds() - began > patience:
                return
