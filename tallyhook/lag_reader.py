"""How far a consumer group came in a topic, and how old the first record is that it has not processed."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tallyhook import topic_rules
from tallyhook.errors import KafkaUnavailable
from tallyhook.kafka import client_config, plain_reader, why_no_positions, words
from tallyhook.settings import KafkaSettings

REQUEST_SECONDS = 5.0
LEADERS_MS = 5_000
"""How long it is remembered who leads a partition."""
RETENTION_SECONDS = 60.0
"""How often the topic's retention is asked for."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits in one partition.

    Args:
        records: not yet processed.
        oldest_timestamp: of the first of them, in seconds since 1970; None where nothing waits, or for less than the
            time between two looks.
    """

    records: int
    oldest_timestamp: float | None


@dataclass(frozen=True, slots=True)
class _First:
    """The first record at or behind a position.

    Args:
        offset: the position.
        asked_high: the high watermark when it was asked for.
        timestamp: None where there was none: behind the last record there may be a transaction's marker, which nobody
            is ever given.
    """

    offset: int
    asked_high: int
    timestamp: float | None


def quiet_client(kafka: KafkaSettings) -> AdminClient:
    """For readers: asked every few seconds, it would fill the log while a broker is away.

    It forgets who leads a partition after a few seconds. Asked in the moment when a broker comes back, it remembers a
    leader's epoch that is over, and an admin client of librdkafka 2.16 asks with it again for a quarter of an hour:
    "Leader epoch is older than broker epoch".
    """
    return AdminClient(client_config(kafka) | {"log_level": 2, "metadata.max.age.ms": LEADERS_MS})


class LagReader:
    """Asks about one group without being a member of it; it never commits.

    Args:
        client: may serve several readers; kept, since its answers fail once it is gone.
        group: whose commits are read.
        partitions: how many the topic has.
    """

    def __init__(self, kafka: KafkaSettings, client: AdminClient, topic: str, group: str, partitions: int) -> None:
        self._admin, self._topic, self._group, self._partitions = client, topic, group, range(partitions)
        # A reader that never subscribes is no member. The admin client's list_consumer_group_offsets is no way out: it
        # ends the process when the group's coordinator is not known yet (librdkafka 2.16).
        options: dict[str, Any] = {
            "group.id": group,
            "log_level": 2,
            # One record a partition is wanted, so that nothing is fetched ahead.
            "queued.min.messages": 1,
            "fetch.message.max.bytes": 16_384,
        }
        self._reader = plain_reader(kafka, isolation="read_uncommitted", **options)
        self._highs: dict[int, int] = {}
        self._firsts: dict[int, _First] = {}
        self._retention: tuple[float, float | None] = (float("-inf"), None)

    def read(self) -> dict[int, Waiting]:
        """What waits by partition; raises KafkaUnavailable."""
        tps = [TopicPartition(self._topic, number) for number in self._partitions]
        try:
            # In this order, since all three move: a position is never below the earlier low nor above the later high.
            lows = self._offsets(tps, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
            committed = self._committed(tps)
            highs = self._offsets(tps, OffsetSpec.latest())  # type: ignore[no-untyped-call]
            positions = {}
            for tp in committed:
                if tp.error is not None:
                    raise KafkaException(tp.error)
                # librdkafka's word for no commit is a negative offset.
                positions[tp.partition] = max(lows[tp.partition], tp.offset)
            self._stamp(positions, highs)
        except KafkaException as failure:
            raise KafkaUnavailable(f"positions in {self._topic}: {words(failure.args[0])}") from failure
        self._highs = highs
        return {number: self._waiting(number, positions[number], highs[number]) for number in self._partitions}

    def retention_seconds(self) -> float | None:
        """How long the topic keeps a record; None: for ever, or the cluster does not tell. Raises KafkaUnavailable."""
        asked_at, known = self._retention
        if time.monotonic() - asked_at > RETENTION_SECONDS:
            config = topic_rules.configs(self._admin, [self._topic], REQUEST_SECONDS).get(self._topic, {})
            retention_ms = int(config.get("retention.ms", -1))
            known = retention_ms / 1000 if retention_ms > 0 else None
            self._retention = (time.monotonic(), known)
        return known

    def close(self) -> None:
        """Closes the connections."""
        self._reader.close()

    def _committed(self, tps: list[TopicPartition]) -> list[TopicPartition]:
        try:
            return self._reader.committed(tps, timeout=REQUEST_SECONDS)
        except KafkaException as failure:
            reason = why_no_positions(self._reader, failure.args[0], self._group)
            raise KafkaUnavailable(f"positions in {self._topic}, {reason}") from failure

    def _offsets(self, tps: Sequence[TopicPartition], spec: OffsetSpec) -> dict[int, int]:
        answer = self._admin.list_offsets(dict.fromkeys(tps, spec), request_timeout=REQUEST_SECONDS)
        return {tp.partition: future.result().offset for tp, future in answer.items()}

    def _waiting(self, partition: int, position: int, high: int) -> Waiting:
        first = self._firsts.get(partition)
        if first is None or first.offset != position:
            return Waiting(max(0, high - position), None)
        return Waiting(max(0, high - position) if first.timestamp is not None else 0, first.timestamp)

    def _stamp(self, positions: Mapping[int, int], highs: Mapping[int, int]) -> None:
        """Reads the records that wait longer than since the last look; what is known of a position stays known."""
        wanted = {
            number: position
            for number, position in positions.items()
            if position < min(highs[number], self._highs.get(number, highs[number]))
            and not self._is_known(number, position, highs[number])
        }
        if not wanted:
            return
        self._reader.assign([TopicPartition(self._topic, number, offset) for number, offset in wanted.items()])
        try:
            deadline = time.monotonic() + REQUEST_SECONDS
            while wanted and time.monotonic() < deadline:
                for message in self._reader.consume(len(wanted), 0.1):
                    number, error = message.partition() or 0, message.error()
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001  no public name
                        raise KafkaException(error)
                    if number in wanted:
                        stamp = None if error is not None else _timestamp(message)
                        self._firsts[number] = _First(wanted.pop(number), highs[number], stamp)
        finally:
            self._reader.unassign()

    def _is_known(self, partition: int, position: int, high: int) -> bool:
        first = self._firsts.get(partition)
        return (
            first is not None and first.offset == position and (first.timestamp is not None or first.asked_high == high)
        )


def _timestamp(message: Message) -> float:
    """Seconds since 1970; of a record without a timestamp the moment it was seen."""
    kind, stamp_ms = message.timestamp()
    return time.time() if kind == TIMESTAMP_NOT_AVAILABLE else stamp_ms / 1000
