"""The check that reading began where it was told to: a client that began further on would lose records for good.

Offsets have holes where transactions left their markers, so a first record behind the position proves nothing by
itself; then a reader of its own looks what the first record is.
"""

from collections.abc import Sequence

from confluent_kafka import KafkaException, Message, TopicPartition

from tallyhook.errors import KafkaUnavailable
from tallyhook.kafka import plain_reader, words
from tallyhook.settings import KafkaSettings


class FirstRecords:
    """Remembers from where each partition is to be read until its first record has come."""

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._kafka, self._topic = kafka, topic
        self._expected: dict[int, int] = {}

    def expect(self, partition: int, offset: int) -> None:
        """The partition is read from `offset` on."""
        self._expected[partition] = offset

    def check(self, messages: Sequence[Message]) -> None:
        """Raises KafkaUnavailable when a partition's first record is not the first one from its position on."""
        if not self._expected:
            return
        for message in messages:
            partition, offset = message.partition() or 0, message.offset() or 0
            expected = self._expected.pop(partition, None)
            if expected is not None and offset > expected:
                first = self._look(partition, expected)
                if first != offset:
                    raise KafkaUnavailable(
                        f"{self._topic}[{partition}] was to be read from {expected} on and began at {offset},"
                        f" the first record is {first}; reading anew"
                    )

    def _look(self, partition: int, offset: int) -> int | None:
        """The offset of the first committed record from `offset` on; None when none is found in time."""
        reader = plain_reader(self._kafka)
        try:
            reader.assign([TopicPartition(self._topic, partition, offset)])
            for message in reader.consume(1, self._kafka.request_timeout_seconds):
                if message.error() is None:
                    return message.offset()
        except KafkaException as failure:
            raise KafkaUnavailable(f"{self._topic}[{partition}]: {words(failure.args[0])}") from failure
        finally:
            reader.close()
        return None
