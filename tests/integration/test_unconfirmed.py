"""What Kafka refused while it took the record behind it is not stored, whatever its delivery report says."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from confluent_kafka import KafkaError, Message
from confluent_kafka.admin import NewTopic

from ingress import publisher as door
from ingress.records import Record
from schemas.headers import Header
from sinks.relay import publisher as relay
from sinks.relay.record import Record as RelayRecord
from sinks.relay.status import Status
from streams import publisher as stream
from streams.plan import Outgoing
from tallyhook.clock import SystemClock
from tallyhook.kafka import admin, producer, read_to_end, unconfirmed
from tallyhook.operations.confirmed_publisher import ConfirmedPublisher
from tallyhook.settings import Installation, KafkaSettings, load
from tests.late_leader import LateLeader

SECONDS = 20.0
NO_OFFSET = "Kafka gave it no offset; it may not be stored"


@dataclass(frozen=True, slots=True)
class Place:
    """A topic of one partition, and the way to it on which the first batch meets no leader."""

    topic: str
    kafka: KafkaSettings
    way: KafkaSettings
    proxy: LateLeader

    def stored(self) -> list[bytes | None]:
        """What a reader of committed records finds."""
        return [message.value() for message in read_to_end(self.kafka, self.topic, timeout_seconds=SECONDS)]


@dataclass(frozen=True, slots=True)
class Listed:
    """What a tool sends."""

    topic: str
    key: bytes | None
    value: bytes
    headers: list[Header]


@pytest.fixture
def place(kafka_settings: KafkaSettings, installation: Installation) -> Iterator[Place]:
    """Of the test's own."""
    assert kafka_settings.bootstrap is not None
    topic = f"{installation.topic_prefix}.late"
    client = admin(kafka_settings)
    client.create_topics([NewTopic(topic, 1, 1)])[topic].result(SECONDS)
    proxy = LateLeader(kafka_settings.bootstrap)
    way = kafka_settings.model_copy(update={"bootstrap": proxy.address})
    yield Place(topic, kafka_settings, way, proxy)
    proxy.close()


def test_a_report_of_success_may_be_none(place: Place) -> None:
    """Shows what librdkafka does; were it mended, this would tell."""
    reports: list[tuple[KafkaError | None, Message]] = []
    client = producer(place.way, linger_ms=1, delivery_timeout_seconds=SECONDS, on_fatal=lambda _: None)
    client.produce(place.topic, b"first", on_delivery=lambda *report: reports.append(report))
    assert place.proxy.held.wait(SECONDS)
    client.produce(place.topic, b"second", on_delivery=lambda *report: reports.append(report))
    assert client.flush(SECONDS) == 0
    assert [(error, message.value(), message.offset()) for error, message in reports] == [
        (None, b"first", None),
        (None, b"second", 0),
    ]
    assert [unconfirmed(*report) for report in reports] == [NO_OFFSET, None]
    assert place.stored() == [b"second"]


async def test_the_door_does_not_take_it_for_stored(place: Place) -> None:
    """Its sender is told 503 and sends it again."""
    publisher = door.Publisher(
        place.way,
        loop=asyncio.get_running_loop(),
        linger_ms=1,
        delivery_timeout_seconds=SECONDS,
        record_limit_bytes=1 << 20,
        on_fatal=lambda _: None,
    )
    first = asyncio.create_task(publisher.publish(Record(place.topic, b"k", b"first", [])))
    assert await asyncio.to_thread(place.proxy.held.wait, SECONDS)
    await publisher.publish(Record(place.topic, b"k", b"second", []))
    with pytest.raises(door.NotConfirmed, match=NO_OFFSET):
        await first
    await asyncio.to_thread(publisher.close, SECONDS)
    assert place.stored() == [b"second"]


async def test_the_stream_ends_and_acks_nothing(place: Place) -> None:
    """As for every record that is not confirmed."""
    failures: list[str] = []
    publisher = stream.Publisher(
        place.way,
        linger_ms=1,
        delivery_timeout_seconds=SECONDS,
        most_body_bytes=1 << 10,
        on_failure=failures.append,  # type: ignore[arg-type]  # the process would end here
    )
    first = asyncio.create_task(publisher.publish([Outgoing(place.topic, b"k", b"first", [], None)]))
    assert await asyncio.to_thread(place.proxy.held.wait, SECONDS)
    await publisher.publish([Outgoing(place.topic, b"k", b"second", [], None)])
    await first
    await asyncio.to_thread(publisher.close)
    assert failures == [f"{place.topic} did not take a record: {NO_OFFSET}"]


def test_the_tools_name_it(place: Place) -> None:
    """`backfill` and `redrive` tell it as not confirmed; the next run sends it again."""
    settings = replace(load(), kafka=place.way)
    # The first has left, and found a leader, before the second may go.
    publisher = ConfirmedPublisher(settings, rate_per_second=0.5, clock=SystemClock(), stopping=threading.Event())
    records = [Listed(place.topic, b"k", value, []) for value in (b"first", b"second")]
    assert publisher.publish(records) == [NO_OFFSET, ""]
    assert place.stored() == [b"second"]


def test_the_relay_takes_its_transaction_back(place: Place) -> None:
    """Both records go again, and a reader of committed records sees each once."""
    settings = replace(load(), kafka=place.way)
    publisher = relay.Publisher(settings, f"{place.topic}.relay", Status())
    publisher.fence_others()
    records = [RelayRecord(place.topic, 0, "k", value, []) for value in (b"first", b"second")]

    def send() -> None:
        with publisher.transaction() as publish:
            publish(records[0])
            assert place.proxy.held.wait(SECONDS)
            publish(records[1])

    with pytest.raises(relay.TransactionAborted, match=NO_OFFSET):
        send()
    assert place.proxy.refused.is_set()
    send()
    assert place.stored() == [b"first", b"second"]
