"""Reading a fixed range of each partition of a topic while others go on writing to it."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tallyhook import kafka
from tallyhook.errors import KafkaUnavailable
from tallyhook.settings import KafkaSettings

BATCH_RECORDS = 2000
_BOUNDED: dict[str, Any] = {"queued.max.messages.kbytes": 16_384}
"""Most that is fetched ahead, over all partitions."""
_NEW_LEADER = (
    *(KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE),
    *(KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.FENCED_LEADER_EPOCH),
)
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets of one partition, from `start` up to but not including `end`."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """How many offsets it spans; there may be fewer records."""
        return max(0, self.end - self.start)


def read(
    settings: KafkaSettings, topic: str, ranges: Mapping[int, Range], *, patience_seconds: float
) -> Iterator[list[Message]]:
    """The committed records of the ranges in batches of at most 2,000, each partition in its order.

    A range ends where an offset at or behind its end has been seen, not at the first end of the partition: an open
    transaction hides what lies behind it for a while.

    Raises:
        KafkaUnavailable: no record came for `patience_seconds`, or retention cut into the range meanwhile.
    """
    missing = {number: wanted for number, wanted in ranges.items() if wanted.length}
    if not missing:
        return
    reader = kafka.plain_reader(settings, **_BOUNDED)
    try:
        reader.assign([TopicPartition(topic, number, wanted.start) for number, wanted in missing.items()])
        moved_at = time.monotonic()
        while missing:
            found: list[Message] = []
            for message in reader.consume(BATCH_RECORDS, _POLL_SECONDS):
                number, offset = message.partition() or 0, message.offset() or 0
                if number not in missing:
                    continue
                if _is_record(message, topic) and offset < missing[number].end:
                    found.append(message)
                    offset += 1
                if offset >= missing[number].end:
                    del missing[number]
                    reader.pause([TopicPartition(topic, number)])
            if found:
                moved_at = time.monotonic()
                yield found
                # What the caller did with the batch is no silence of the broker's.
                moved_at = max(moved_at, time.monotonic())
            elif time.monotonic() - moved_at > patience_seconds:
                raise KafkaUnavailable(
                    f"the end of {topic} was not reached: nothing came for {patience_seconds:g} s on partitions"
                    f" {sorted(missing)}; a transaction may still be open there"
                )
    except KafkaException as failure:
        raise KafkaUnavailable(f"reading {topic}: {kafka.words(failure.args[0])}") from failure
    finally:
        reader.close()


def _is_record(message: Message, topic: str) -> bool:
    """Whether it is a record and not the news that a partition's end was reached."""
    error = message.error()
    if error is None:
        return True
    if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  the code has no public name
        return False
    raise KafkaUnavailable(f"reading {topic}: {kafka.words(error)}; retention may have cut into the range: audit again")


def since(settings: KafkaSettings, topic: str, ranges: Mapping[int, Range], moment: datetime) -> dict[int, Range]:
    """The end of each range, from its first record that was written at the moment or later; raises KafkaUnavailable."""
    milliseconds = int(moment.timestamp() * 1000)
    reader = kafka.plain_reader(settings)
    try:
        asked = [TopicPartition(topic, number, milliseconds) for number in ranges]
        answers = _by_time(reader, asked, settings.request_timeout_seconds)
    except KafkaException as failure:
        raise KafkaUnavailable(f"offsets by time of {topic}: {kafka.words(failure.args[0])}") from failure
    finally:
        reader.close()
    # A negative offset says that no record is as young as that.
    starts = {answer.partition: answer.offset for answer in answers if answer.offset >= 0}
    return {
        number: Range(max(held.start, min(starts.get(number, held.end), held.end)), held.end)
        for number, held in ranges.items()
    }


def _by_time(reader: Consumer, asked: list[TopicPartition], timeout_seconds: float) -> list[TopicPartition]:
    """Asks again while a partition has a new leader, as each has just after a broker started."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        answers = reader.offsets_for_times(asked, timeout=timeout_seconds)
        errors = [answer.error for answer in answers if answer.error is not None]
        if not errors:
            return answers
        if not all(error.code() in _NEW_LEADER for error in errors) or time.monotonic() > deadline:
            raise KafkaException(errors[0])
        time.sleep(_POLL_SECONDS)


def watermarks(settings: KafkaSettings, topic: str, partitions: Sequence[int]) -> dict[int, Range]:
    """What the topic holds now, open transactions included; raises KafkaUnavailable."""
    found = kafka.watermarks(settings, topic, partitions, settings.request_timeout_seconds)
    return {number: Range(*ends) for number, ends in found.items()}
