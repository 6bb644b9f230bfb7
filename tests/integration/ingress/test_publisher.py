"""The publisher on a real broker: order under a full queue, and what it says when it cannot."""

import asyncio

import pytest
from confluent_kafka import Message

from ingress.publisher import NotConfirmed, Publisher
from ingress.records import Record
from schemas.topics import TopicNames
from tallyhook.errors import KafkaUnavailable
from tallyhook.kafka import read_to_end
from tallyhook.settings import KafkaSettings


def publisher(settings: KafkaSettings, *, queue_records: int = 1000, seconds: float = 20.0) -> Publisher:
    """A publisher on the running loop."""
    return Publisher(
        settings,
        loop=asyncio.get_running_loop(),
        linger_ms=5,
        delivery_timeout_seconds=seconds,
        record_limit_bytes=1_000_000,
        on_fatal=pytest.fail,
        queue_records=queue_records,
    )


async def test_a_full_queue_keeps_the_order(kafka_settings: KafkaSettings, topics: TopicNames) -> None:
    """Records that wait for room are not overtaken by those that come when there is room again."""
    own = publisher(kafka_settings, queue_records=20)

    await asyncio.gather(*(own.publish(Record(topics.events, b"dep_1", b"%d" % n, ())) for n in range(2000)))

    assert await asyncio.to_thread(own.close, 5.0) == 0
    found: list[Message] = await asyncio.to_thread(read_to_end, kafka_settings, topics.events, timeout_seconds=20)
    assert [b"%d" % n for n in range(2000)] == [record.value() for record in found]


async def test_what_the_broker_refuses_is_not_confirmed(kafka_settings: KafkaSettings, topics: TopicNames) -> None:
    """Too large, or a topic that does not exist: an error for this record, and the next one goes on."""
    own = publisher(kafka_settings)

    with pytest.raises(NotConfirmed):
        await own.publish(Record(topics.events, b"k", b"x" * 2_000_000, ()))
    assert own.last_failed_at > own.last_confirmed_at
    await own.publish(Record(topics.events, b"k", b"x", ()))
    assert own.last_confirmed_at > own.last_failed_at
    assert own.oldest_unconfirmed_seconds == 0
    await asyncio.to_thread(own.close, 5.0)


async def test_without_a_broker_it_gives_up_in_time() -> None:
    """The deadline is the caller's, whatever the client's own clocks do."""
    own = publisher(KafkaSettings(bootstrap="127.0.0.1:1"), seconds=1.0)
    began = asyncio.get_running_loop().time()

    with pytest.raises(NotConfirmed, match="within 1 s"):
        await own.publish(Record("t", b"k", b"x", ()))

    assert asyncio.get_running_loop().time() - began < 3
    with pytest.raises(KafkaUnavailable):
        await asyncio.to_thread(own.probe, "t", 0.2)
    await asyncio.to_thread(own.close, 0.1)
