"""Topics that do not fit and positions that were lost stop the worker with a message; nothing resets silently."""

import asyncio
import signal

import aiokafka
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.structs import OffsetAndMetadata
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic

from schemas.topics import TopicNames
from streams.ending import ENDED_BY_ITSELF
from streams.positions import Positions, commit_note
from tallyhook.errors import TopicMismatch
from tallyhook.kafka import admin, producer
from tallyhook.settings import Installation, KafkaSettings
from tests.integration.streams.traffic import Road, disordered, event, source
from tests.integration.streams.worker import Worker, until


def positions(road: Road) -> Positions:
    """As the worker asks for them."""
    return Positions(road.kafka, road.names, road.group, 10)


def test_missing_topics_are_named(kafka_settings: KafkaSettings, installation: Installation) -> None:
    """With the command that makes them."""
    names = TopicNames(installation.topic_prefix)
    with pytest.raises(TopicMismatch, match=rf"{names.events} does not exist.*tallyhook topics apply"):
        Positions(kafka_settings, names, "group", 10).check_topics(8)


def test_unlike_partition_counts_are_refused(kafka_settings: KafkaSettings, installation: Installation) -> None:
    """Both topics are named, and what would be right."""
    names = TopicNames(installation.topic_prefix)
    client = admin(kafka_settings)
    counts = {names.events: 8, names.state_changes: 4, names.dead_letters: 8}
    for made in client.create_topics([NewTopic(name, count, 1) for name, count in counts.items()]).values():
        made.result(30)
    with pytest.raises(TopicMismatch) as caught:
        Positions(kafka_settings, names, "group", 10).check_topics(8)
    for part in (names.events, names.state_changes, "4 partitions", "tallyhook topics apply"):
        assert part in str(caught.value)


def test_the_command_ends_with_1_when_the_topics_do_not_fit(worker: Worker) -> None:
    """No start, no position, just the message."""
    worker.start()
    assert worker.wait(60) == 1
    assert "TopicMismatch" in worker.log


def judged(road: Road, worker: Worker, count: int, seed: int) -> None:
    """Writes events and has them judged and committed."""
    road.write(disordered(count, 50, seed))
    worker.start()
    until(lambda: road.unjudged() == 0, 90, "all judged")
    assert worker.end(signal.SIGTERM) == 0


async def commit(road: Road, offset: int, note: str) -> None:
    """Commits for partition 0, as the worker does."""
    member = AIOKafkaConsumer(bootstrap_servers=str(road.kafka.bootstrap), group_id=road.group)
    partition = aiokafka.TopicPartition(road.names.events, 0)
    member.assign([partition])
    await member.start()
    await member.commit({partition: OffsetAndMetadata(offset, note)})
    await member.stop()


def test_a_position_of_another_topic_of_the_same_name_stops_the_worker(road: Road, worker: Worker) -> None:
    """The id beside the commit tells, though the offset would fit."""
    judged(road, worker, 300, seed=1)
    found = positions(road).read([0])[0]
    assert found.note == positions(road).events_topic_id()
    asyncio.run(commit(road, 1, commit_note("AAAAAAAAAAAAAAAAAAAAAA")))
    worker.start()
    assert worker.wait(60) == 1
    assert "PositionLost" in worker.log
    assert "worked with topic id AAAAAAAAAAAAAAAAAAAAAA" in worker.log


def test_a_topic_made_anew_ends_a_running_worker(road: Road, worker: Worker) -> None:
    """Kafka drops the commits with the topic, so the next start judges the new one from its beginning."""
    road.write(disordered(300, 50, seed=1))
    worker.start()
    until(lambda: road.unjudged() == 0, 90, "all judged")
    client = admin(road.kafka)
    client.delete_topics([road.names.events])[road.names.events].result(30)
    client.create_topics([NewTopic(road.names.events, road.partitions, 1)])[road.names.events].result(30)
    assert worker.wait(90) == ENDED_BY_ITSELF
    before = road.output_count()
    written = road.write(disordered(200, 50, seed=2))
    worker.start()
    until(lambda: road.unjudged() == 0, 90, "all of the new topic judged")
    assert road.output_count() >= before + written


def test_events_deleted_before_they_were_read_stop_the_worker(road: Road, worker: Worker) -> None:
    """The range is named; the worker does not jump to what is left."""
    judged(road, worker, 300, seed=1)
    road.write(disordered(600, 50, seed=2, first=300))
    client = admin(road.kafka)
    highs = {number: position.high for number, position in positions(road).read(range(road.partitions)).items()}
    cut = [TopicPartition(road.names.events, number, high - 1) for number, high in highs.items()]
    for deleted in client.delete_records(cut).values():
        deleted.result(30)
    before = road.output_count()
    worker.start()
    assert worker.wait(60) == 1
    assert "lies outside of the topic's range" in worker.log
    assert road.output_count() == before


def test_holes_in_the_offsets_are_none_in_the_events(road: Road, worker: Worker) -> None:
    """A foreign writer's transactions leave markers: all that is there is judged and committed."""
    client = producer(
        road.kafka, linger_ms=5, delivery_timeout_seconds=30, transactional_id=f"{road.group}.foreign",
        on_fatal=lambda error: pytest.fail(str(error)),
    )  # fmt: skip
    client.init_transactions(30)
    for round_number in range(4):
        client.begin_transaction()
        for number in range(20):
            made = event(round_number * 20 + number, f"dep_{number}", round_number + 1)
            client.produce(road.names.events, key=made.key, value=made.value, headers=made.headers)
        client.commit_transaction(30)
    worker.start()
    until(lambda: road.output_count() == 80, 90, "80 outputs")
    outputs = [source(message) for messages in road.outputs().values() for message in messages]
    assert sorted(road.events()) == sorted(outputs)
    used = {partition for partition, _ in outputs}

    def only_the_last_marker_waits() -> bool:
        found = positions(road).read(range(road.partitions))
        return all(position.lag == (1 if number in used else 0) for number, position in found.items())

    until(only_the_last_marker_waits, 30, "all committed but the last marker, which nobody is ever given")
    assert worker.end(signal.SIGTERM) == 0
