"""Writes events as the door does, and reads what the stream made of them."""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from confluent_kafka import Message
from confluent_kafka.admin import NewTopic

from schemas.headers import EventHeaders, Header
from schemas.topics import TopicNames
from streams.positions import Positions
from tallyhook.errors import KafkaUnavailable
from tallyhook.kafka import admin, producer, read_to_end, watermarks
from tallyhook.settings import Installation, KafkaSettings

READ_SECONDS = 60.0
VERDICT_HEADERS = 5

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Event:
    """One record for `events`."""

    key: bytes | None
    value: bytes | None
    headers: list[Header]


TEMPLATE = EventHeaders(
    id="evt_0",
    type="deposit.settled",
    source="/gateway",
    subject="dep_0",
    time="2026-01-01T00:00:00.000Z",
    object_kind="deposit_order",
    status="open",
    version=1,
    merchant="mrc_1",
    sequence=1,
    livemode=True,
    received_at="2026-01-01T00:00:00.000Z",
    origin="webhook",
    key_id="key_1",
)


def event(number: int, subject: str, version: int | None, **changes: object) -> Event:
    """An event of a deposit, or of an object without versions."""
    kind = "deposit_order" if version is not None else "balance_transaction"
    headers = replace(
        TEMPLATE,
        id=f"evt_{number}",
        subject=subject,
        version=version,
        object_kind=kind,
        status=f"status_{version}" if version is not None else "",
        **changes,  # type: ignore[arg-type]  # names of the headers' members
    ).encode()
    headers.append(("webhook-id", f"evt_{number}"))
    return Event(subject.encode(), b'{"id":"evt_%d"}' % number, headers)


def disordered(count: int, objects: int, seed: int, first: int = 0) -> Iterator[Event]:
    """Events of many objects: rising versions, some late, some delivered twice, some objects without versions."""
    chance = random.Random(seed)
    versions: dict[int, int] = defaultdict(int)
    for number in range(first, first + count):
        which, luck = chance.randrange(objects), chance.random()
        if luck < 0.05:
            yield event(number, f"bal_{which}", None)
        elif luck < 0.25 and versions[which] > 1:
            yield event(number, f"dep_{which}", chance.randint(1, versions[which]))
        else:
            versions[which] += chance.choice((1, 1, 1, 2))  # a gap is filled by a late one, or never
            yield event(number, f"dep_{which}", versions[which])


class Road:
    """The topics of one installation, from both ends.

    Args:
        kafka: how to connect.
        installation: prefix and partitions.
    """

    def __init__(self, kafka: KafkaSettings, installation: Installation) -> None:
        self.kafka, self.partitions = kafka, installation.partitions
        self.names = TopicNames(installation.topic_prefix)
        self.group = installation.group_id("streams")

    def create_topics(self) -> None:
        """Makes the topics that the stream reads and writes."""
        topics = (self.names.events, self.names.state_changes, self.names.dead_letters)
        client = admin(self.kafka)
        for made in client.create_topics([NewTopic(name, self.partitions, 1) for name in topics]).values():
            made.result(30)

    def write(self, events: Iterable[Event]) -> int:
        """Publishes events in order; returns how many once all are confirmed."""
        failures: list[object] = []
        client = producer(self.kafka, linger_ms=5, delivery_timeout_seconds=120, on_fatal=failures.append)
        count = 0
        for count, record in enumerate(events, start=1):
            client.produce(
                self.names.events,
                key=record.key,
                value=record.value,
                headers=record.headers,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
            if count % 500 == 0:
                client.poll(0)
        assert client.flush(120) == 0
        assert failures == []
        return count

    def events(self) -> dict[Place, Message]:
        """Every record of `events` by partition and offset."""
        return {
            place(message): message
            for message in read_to_end(self.kafka, self.names.events, timeout_seconds=READ_SECONDS)
        }

    def outputs(self) -> dict[int, list[Message]]:
        """`state-changes` by partition, in order."""
        return self._by_partition(self.names.state_changes)

    def dead_letters(self) -> list[Message]:
        """Every dead letter."""
        return read_to_end(self.kafka, self.names.dead_letters, timeout_seconds=READ_SECONDS)

    def output_count(self) -> int:
        """Records in `state-changes` and `dead-letters`; 0 while the broker does not know."""
        return self._high(self.names.state_changes) + self._high(self.names.dead_letters)

    def unjudged(self) -> int:
        """Events the group has not committed; more than none while the broker does not know."""
        group = Positions(self.kafka, self.names, self.group, 10)
        try:
            return sum(position.lag for position in group.read(range(self.partitions)).values())
        except KafkaUnavailable:
            return 1

    def _high(self, topic: str) -> int:
        try:
            return sum(high for _, high in watermarks(self.kafka, topic, range(self.partitions), 10).values())
        except KafkaUnavailable:  # a leader may be unknown for a moment after a topic or a broker was started
            return 0

    def _by_partition(self, topic: str) -> dict[int, list[Message]]:
        found: dict[int, list[Message]] = {number: [] for number in range(self.partitions)}
        for message in read_to_end(self.kafka, topic, timeout_seconds=READ_SECONDS):
            found[message.partition() or 0].append(message)
        for messages in found.values():
            messages.sort(key=lambda message: message.offset() or 0)
        return found


def place(message: Message) -> Place:
    """Partition and offset of a record."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return partition, offset


def source(message: Message) -> Place:
    """The delivery that an output speaks of."""
    found = header_texts(message)
    return int(found["ce_sourcepartition"]), int(found["ce_sourceoffset"])


def header_texts(message: Message) -> dict[str, str]:
    """Headers by name, the first of each that are UTF-8."""
    found: dict[str, str] = {}
    for name, value in header_list(message):
        if value is not None:
            found.setdefault(name, value if isinstance(value, str) else value.decode(errors="replace"))
    return found


def header_list(message: Message) -> Sequence[tuple[str, bytes | str | None]]:
    """Headers in order."""
    found = message.headers() or []
    return list(found.items()) if isinstance(found, dict) else found


def assert_nothing_lost(road: Road) -> None:
    """Every delivery is in `state-changes` or in the dead letters, unchanged and in its partition."""
    events = road.events()
    found: set[Place] = {source(message) for message in road.dead_letters()}
    for partition, messages in road.outputs().items():
        for message in messages:
            cause = events[source(message)]
            assert message.partition() == cause.partition() == partition
            assert (message.key(), message.value()) == (cause.key(), cause.value())
            assert header_list(message)[:-VERDICT_HEADERS] == header_list(cause)
            found.add(source(message))
    assert sorted(events.keys() - found) == []


def assert_first_passes_in_order(road: Road) -> None:
    """Repeats aside, the outputs of a partition follow the order of its deliveries, without a hole."""
    for messages in road.outputs().values():
        following = 0
        for message in messages:
            _, offset = source(message)
            assert offset <= following, f"{message.partition()}: {offset} before {following}"
            following = max(following, offset + 1)


def assert_versions_never_fall(road: Road) -> None:
    """Repeats aside, what each object's deliveries are told of the state before never goes back."""
    for messages in road.outputs().values():
        latest: dict[bytes, int] = {}
        passed = -1
        for message in messages:
            _, offset = source(message)
            if offset <= passed:
                continue
            passed = offset
            found = header_texts(message)
            key = bytes(message.key() or b"")
            previous = int(found["ce_previousversion"] or -1)
            assert previous >= latest.get(key, -1), (key, offset)
            if "ce_version" not in found:
                assert found["ce_verdict"] in ("immutable", "redelivered")
                continue
            version = int(found["ce_version"])
            latest[key] = max(previous, version)
            assert (found["ce_verdict"] == "advanced") == (version > previous), (key, offset, found)
