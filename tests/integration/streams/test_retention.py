"""Objects that nobody has touched for long are forgotten, in the changelog and in the store."""

import signal
import time

import pytest
from confluent_kafka.admin import NewTopic

from streams.guard import Seen, encode
from tallyhook.kafka import admin, producer, read_to_end
from tests.integration.streams.conftest import MakeWorker
from tests.integration.streams.traffic import Road, assert_nothing_lost, disordered, event, header_texts
from tests.integration.streams.worker import Worker, until

OBJECTS = 700  # of either age: more than one step's worth
TODAY = int(time.time()) // 86_400


def leave_old_and_new(road: Road) -> str:
    """The changelog of objects seen once, at version 1, 60 and 5 days ago; returns the topic."""
    client, topic = admin(road.kafka), f"{road.group}-objects-changelog"
    compacted = NewTopic(topic, road.partitions, 1, config={"cleanup.policy": "compact"})
    client.create_topics([compacted])[topic].result(30)
    failures: list[object] = []
    writer = producer(road.kafka, linger_ms=5, delivery_timeout_seconds=30, on_fatal=failures.append)
    for number in range(OBJECTS):
        for age, days in (("old", 60), ("new", 5)):
            writer.produce(topic, key=f"{age}_{number}", value=encode(Seen(1, "open", (1,), TODAY - days)))
    assert writer.flush(30) == 0
    assert failures == []
    return topic


def told(road: Road, age: str, half: int) -> set[str]:
    """The verdicts on the second delivery of a half's objects."""
    return {
        header_texts(message)["ce_verdict"]
        for messages in road.outputs().values()
        for message in messages
        if (message.key() or b"").decode().startswith(age) and int((message.key() or b"_").split(b"_")[1]) % 2 == half
    }


def judged_again(road: Road, half: int) -> None:
    """Delivers the only version of half of the objects again."""
    road.write(event(number, f"{age}_{number}", 1) for number in range(half, OBJECTS, 2) for age in ("old", "new"))
    until(lambda: road.unjudged() == 0, 60, "all judged")


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
def test_what_is_untouched_for_long_is_forgotten(road: Road, make_worker: MakeWorker, store: str) -> None:
    """A tombstone for each old object and for no other, while batches go on; and it stays forgotten after kill -9."""
    topic = leave_old_and_new(road)
    worker: Worker = make_worker(environment={"TALLYHOOK_STREAM_STORE": store})
    worker.start()
    worker.wait_ready()
    road.write(disordered(500, 50, seed=1))
    count = f"tallyhook_stream_forgotten_objects_total {OBJECTS}.0"
    until(lambda: count in worker.ask("/metrics")[1], 60, lambda: f"all forgotten; log ends {worker.log[-3000:]}")
    tombstones = [message for message in read_to_end(road.kafka, topic, timeout_seconds=60) if message.value() is None]
    assert sorted(f"old_{number}".encode() for number in range(OBJECTS)) == sorted(
        bytes(message.key() or b"") for message in tombstones
    )
    judged_again(road, 0)
    worker.end(signal.SIGKILL)
    worker.start()
    worker.wait_ready()
    judged_again(road, 1)
    assert worker.end(signal.SIGTERM) == 0
    for half in (0, 1):
        assert told(road, "old", half) == {"advanced"}
        assert told(road, "new", half) == {"redelivered"}
    assert_nothing_lost(road)
