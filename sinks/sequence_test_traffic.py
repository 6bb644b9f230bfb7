"""Numbers of test events, read from the headers of the test prefix's `events` topic: they never come to this database.

The topic may be absent. Where it was made anew, or lost its oldest records, reading goes on at its beginning: numbers
that are seen twice change nothing.
"""

from datetime import datetime

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from schemas.headers import HeaderError, decode
from sinks.records import headers_of
from sinks.sequence_sources import Cursors, Page
from sinks.sequences import Seen
from tallyhook import kafka, logs
from tallyhook.clock import Clock
from tallyhook.errors import KafkaUnavailable
from tallyhook.postgres import Connection, Queries
from tallyhook.settings import KafkaSettings

SOURCE = "test-events"
RECORDS_MAX = 10_000
WAIT_SECONDS = 0.05
LOOK_SECONDS = 30.0
"""How often it is looked whether the topic has come to be, or has more partitions."""

_log = logs.logger(__name__)


class TopicReader:
    """Reads a topic from given positions; used by one thread."""

    def __init__(self, settings: KafkaSettings, topic: str, clock: Clock) -> None:
        self._settings, self._topic, self._clock = settings, topic, clock
        self._reader: Consumer | None = None
        self._looked_at = float("-inf")
        self._partitions = 0
        self.positions: dict[int, int] | None = None
        """Where the next record is read, by partition; None until it was told."""

    def take(self) -> list[Message]:
        """What has come, at most 10,000 records; nothing while there is no topic. Raises KafkaUnavailable."""
        try:
            if not self._topic_is_there() or not self.positions:
                return []
            messages = self._open().consume(RECORDS_MAX, WAIT_SECONDS)
        except KafkaException as failure:
            raise KafkaUnavailable(f"topic {self._topic}: {kafka.words(failure.args[0])}") from failure
        for message in messages:
            error = message.error()
            if error is None or error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  it has no public name
                continue
            self.positions = None
            raise KafkaUnavailable(f"reading {self._topic}: {kafka.words(error)}")
        return [message for message in messages if message.error() is None]

    def start(self, stored: dict[int, int]) -> None:
        """Reads on from these positions; those that the topic does not hold become its beginning.

        Raises:
            KafkaUnavailable: the broker does not answer.
        """
        self.positions = None
        if not self._partitions:
            return
        timeout_seconds = self._settings.request_timeout_seconds
        ends = kafka.watermarks(self._settings, self._topic, range(self._partitions), timeout_seconds)
        positions = {}
        for number, (low, high) in ends.items():
            wanted = stored.get(number, low)
            positions[number] = wanted if low <= wanted <= high else low
            if positions[number] != wanted:
                _log.warning(
                    "test events were lost or their topic was made anew: some of their numbers may look missing",
                    topic=self._topic,
                    partition=number,
                    stored=wanted,
                    begins=low,
                )
        self._open().assign([TopicPartition(self._topic, number, offset) for number, offset in positions.items()])
        self.positions = positions

    def close(self) -> None:
        """Ends the client."""
        if self._reader is not None:
            self._reader.close()
        self._reader = self.positions = None

    def _topic_is_there(self) -> bool:
        now = self._clock.monotonic_seconds()
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            found = self._open().list_topics(self._topic, timeout=self._settings.request_timeout_seconds)
            told = found.topics[self._topic]
            if told.error is not None and kafka.refused(told.error):
                self._looked_at = float("-inf")
                raise KafkaException(told.error)
            partitions = len(told.partitions)
            if partitions != self._partitions:
                self._partitions, self.positions = partitions, None
        return self._partitions > 0

    def _open(self) -> Consumer:
        if self._reader is None:
            options: kafka.Config = {"fetch.wait.max.ms": 500}  # rare records: an idle reader asks twice a second
            self._reader = kafka.plain_reader(self._settings, **options)
        return self._reader


class TrafficOfTests:
    """The numbers of test events as a source; records are fetched before the transaction, outside of it."""

    def __init__(self, connection: Connection, queries: Queries, reader: TopicReader) -> None:
        self._cursors, self._reader = Cursors(connection, queries), reader
        self._messages: list[Message] = []
        self._wanted: dict[int, int] | None = None
        self._after: dict[int, int] | None = None

    def fetch(self) -> None:
        """Reads what has come; raises KafkaUnavailable."""
        self._messages = []
        if self._wanted is not None:
            wanted, self._wanted = self._wanted, None
            self._reader.start(wanted)
        self._messages = self._reader.take()

    def read(self) -> Page:
        """What was fetched, if this is where the last keeper stopped; else nothing, and the next fetch starts there."""
        messages, self._messages, self._after = self._messages, [], None
        stored = self._cursors.load(SOURCE)
        mine = self._reader.positions
        if mine is None or any(stored.get(number, offset) != offset for number, offset in mine.items()):
            self._wanted = stored
            return Page()
        after = dict(mine)
        for message in messages:
            after[message.partition() or 0] = (message.offset() or 0) + 1
        if any(stored.get(number) != offset for number, offset in after.items()):
            self._cursors.save(SOURCE, after)
        self._after = after
        found = [seen for message in messages if (seen := seen_of(message)) is not None]
        return Page(found, more=len(messages) == RECORDS_MAX)

    def taken(self) -> None:
        """The positions are those of the table."""
        if self._after is not None:
            self._reader.positions = self._after

    def failed(self) -> None:
        """What was fetched is read again."""
        self._reader.positions = None
        self._messages = []


def seen_of(message: Message) -> Seen | None:
    """The number of one test event; None where the headers are not the door's."""
    try:
        headers = decode(headers_of(message))
        received_at = datetime.fromisoformat(headers.received_at)
    except (HeaderError, ValueError):
        return None
    if received_at.tzinfo is None:
        return None
    return Seen(headers.merchant, [headers.sequence], received_at, received_at)
