"""A consumer group's member whose positions are kept in PostgreSQL, not in Kafka.

The group only says which partitions are this process's. An assigned partition is paused until its position is claimed;
then it is read from exactly there.
"""

import time
from collections.abc import Mapping

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Message, TopicPartition

from tallyhook import logs
from tallyhook.errors import KafkaUnavailable, PositionLost
from tallyhook.kafka import client_config, refused, words
from tallyhook.settings import KafkaSettings

FETCH_WAIT_MS = 50
QUEUED_KILOBYTES = 65_536
SEEK_ATTEMPTS = 50
SEEK_WAIT_SECONDS = 0.02
WATERMARK_SECONDS = 5.0
LEAVE_SECONDS = 1.0
SETTLING_SECONDS = 5.0
"""A refusal is told well within it."""

_log = logs.logger(__name__)


class Membership:
    """One member of a group on one topic. Callbacks run inside of `take`, on the caller's thread.

    Args:
        fetch_min_bytes: the broker answers once so much waits or 50 ms have passed.

    Attributes:
        unclaimed: assigned partitions whose position is not claimed yet; nothing is read of them.
        started: partitions that are read.
        revoked: partitions that were taken away since the caller last emptied the set.
        broken: the client is of no more use; another member has to be made.
    """

    def __init__(self, kafka: KafkaSettings, topic: str, group_id: str, *, fetch_min_bytes: int) -> None:
        self.topic = topic
        self.unclaimed: set[int] = set()
        self.started: set[int] = set()
        self.revoked: set[int] = set()
        self.broken = False
        self._group_id, self._joined = group_id, False
        self._commits_under_way = 0
        self._settled_at = time.monotonic() + SETTLING_SECONDS
        self._consumer = Consumer(
            client_config(kafka)
            | {
                "group.id": group_id,
                # The new protocol reads on within a second after a broker's restart; the older ones lose everything.
                "group.protocol": "consumer",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "fetch.min.bytes": fetch_min_bytes,
                "fetch.wait.max.ms": FETCH_WAIT_MS,
                "queued.max.messages.kbytes": QUEUED_KILOBYTES,
                "on_commit": self._shown,
            }
        )
        self._consumer.subscribe(
            [topic], on_assign=self._assigned, on_revoke=self._taken_away, on_lost=self._taken_away
        )

    @property
    def assigned(self) -> set[int]:
        """Every partition that the group gave to this member."""
        return self.unclaimed | self.started

    @property
    def settled(self) -> bool:
        """Whether the group took it in. It is told where there are partitions; else silence for a while must do."""
        return self._joined or time.monotonic() > self._settled_at

    def take(self, limit: int, wait_seconds: float) -> list[Message]:
        """At most `limit` records of started partitions; serves the group's callbacks meanwhile.

        Raises:
            PositionLost: a position that was in range is not any more.
            KafkaUnavailable: the topic cannot be read. Records may have been dropped: call `hold` and claim anew.
        """
        try:
            found = self._consumer.consume(limit, wait_seconds)
        except KafkaException as failure:
            self.broken = True
            raise KafkaUnavailable(f"{self.topic}: {words(failure.args[0])}") from failure
        taken = []
        for message in found:
            error = message.error()
            if error is not None:
                self._judge(error, message.partition())
            elif message.partition() in self.started:
                # A revoked partition's records may still come out of the call in which it was revoked.
                taken.append(message)
        return taken

    def start(self, partition: int, offset: int) -> None:
        """Reads a claimed partition from `offset` on. Raises KafkaUnavailable when the client does not take it."""
        place = TopicPartition(self.topic, partition, offset)
        for attempt in range(1, SEEK_ATTEMPTS + 1):
            try:
                self._consumer.seek(place)
                self._consumer.resume([TopicPartition(self.topic, partition)])
            except KafkaException as failure:
                if attempt == SEEK_ATTEMPTS:
                    raise KafkaUnavailable(
                        f"{self.topic}[{partition}] cannot be read: {words(failure.args[0])}"
                    ) from failure
                # The assignment is not through yet; its callbacks are served meanwhile.
                self._consumer.poll(SEEK_WAIT_SECONDS)
                if partition not in self.unclaimed:
                    return
            else:
                self.unclaimed.discard(partition)
                self.started.add(partition)
                return

    def hold(self) -> None:
        """Pauses everything: positions must be claimed again before anything is read."""
        self._pause(self.started)
        self.unclaimed |= self.started
        self.started.clear()

    def watermarks(self, partition: int) -> tuple[int, int]:
        """The first offset held and the end for a reader of committed records. Raises KafkaUnavailable."""
        try:
            low, high = self._consumer.get_watermark_offsets(
                TopicPartition(self.topic, partition), timeout=WATERMARK_SECONDS, cached=False
            )
        except KafkaException as failure:
            raise KafkaUnavailable(f"{self.topic}[{partition}]: {words(failure.args[0])}") from failure
        return low, high

    def show_progress(self, positions: Mapping[int, int]) -> None:
        """Commits positions to Kafka for displays of lag; nothing is read from there, so failures do not matter."""
        offsets = [TopicPartition(self.topic, number, offset) for number, offset in positions.items()]
        if not offsets:
            return
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
            self._commits_under_way += 1
        except KafkaException as failure:
            _log.debug("progress not shown", topic=self.topic, reason=words(failure.args[0]))

    def leave(self, positions: Mapping[int, int]) -> None:
        """Leaves the group, so that others take over at once.

        Its last positions are shown before, for a second at most: else the displays would show a lag that is none until
        another one commits.
        """
        self.show_progress({number: positions[number] for number in self.started if number in positions})
        deadline = time.monotonic() + LEAVE_SECONDS
        try:
            while self._commits_under_way and time.monotonic() < deadline:
                self._consumer.poll(SEEK_WAIT_SECONDS)
        except KafkaException as failure:
            _log.debug("progress not shown", topic=self.topic, reason=words(failure.args[0]))
        self._consumer.close()

    def _shown(self, error: KafkaError | None, _: list[TopicPartition]) -> None:
        self._commits_under_way -= 1
        if error is not None:
            _log.debug("progress not shown", topic=self.topic, reason=words(error))

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for place in partitions:
            # Nothing is read before the claim; the end is a position that always exists.
            place.offset = OFFSET_END
        consumer.incremental_assign(partitions)
        numbers = {place.partition for place in partitions}
        self._joined = True
        self._pause(numbers)
        self.unclaimed |= numbers
        self.revoked -= numbers
        _log.info("assigned", topic=self.topic, partitions=sorted(numbers))

    def _taken_away(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = {place.partition for place in partitions}
        self.unclaimed -= numbers
        self.started -= numbers
        self.revoked |= numbers
        _log.info("taken away", topic=self.topic, partitions=sorted(numbers))

    def _pause(self, partitions: set[int]) -> None:
        try:
            self._consumer.pause([TopicPartition(self.topic, number) for number in sorted(partitions)])
        except KafkaException as failure:
            # Pausing only saves traffic: records of partitions that are not started are never given out.
            _log.debug("not paused", topic=self.topic, reason=words(failure.args[0]))

    def _judge(self, error: KafkaError, partition: int | None) -> None:
        if error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001  the code has no public name
            if partition in self.started:
                raise PositionLost(f"partition {partition} of {self.topic}: {words(error)}")
            return
        # What was refused is told once and tried for ever after: only another client tells whether it still is.
        self.broken = self.broken or error.fatal() or refused(error)
        raise KafkaUnavailable(f"{self.topic}, consumer group {self._group_id}: {words(error)}")
