"""Reading the truth from the progress topic, whatever else lies in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID, uuid4

import pytest
from confluent_kafka import Producer

from schemas.topics import TopicNames
from sinks.relay import progress
from sinks.relay.position import Position
from tallyhook import kafka
from tallyhook.errors import KafkaUnavailable
from tallyhook.settings import Settings

ROWS = [UUID(int=number) for number in range(4)]


@pytest.fixture
def topic(settings: Settings) -> str:
    """The installation's progress topic."""
    return TopicNames(settings.installation.topic_prefix).relay_progress


@contextmanager
def transaction(settings: Settings, name: str) -> Iterator[Producer]:
    """A producer in the middle of a transaction, which is aborted unless the block commits it."""
    producer = kafka.producer(
        settings.kafka,
        linger_ms=1,
        delivery_timeout_seconds=30,
        transactional_id=settings.installation.group_id(name),
        on_fatal=lambda error: pytest.fail(error.str()),
        extra={"transaction.timeout.ms": 30_000},
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    yield producer
    producer.abort_transaction(20)


def test_an_empty_topic_has_no_progress(settings: Settings, topic: str) -> None:
    """A new installation starts with the first row."""
    assert progress.read(settings.kafka, topic, [0, 1, 2, 3], timeout_seconds=20) == {}


def test_the_newest_committed_record_counts_however_far_back(settings: Settings, topic: str) -> None:
    """Records of aborted transactions, more than one look takes in, never hide or replace the committed one."""
    with transaction(settings, "relay-0") as producer:
        for seq in range(3):
            for partition in (0, 1):
                position = Position(seq, ROWS[seq])
                producer.produce(topic, key=str(partition), value=position.encode(), partition=partition)
        producer.commit_transaction(20)
        producer.begin_transaction()
        for seq in range(progress.TAIL_RECORDS + 500):
            producer.produce(topic, key="0", value=Position(3 + seq, uuid4()).encode(), partition=0)
        assert producer.flush(20) == 0
    found = progress.read(settings.kafka, topic, [0, 1, 2, 3], timeout_seconds=20)
    assert found == {0: Position(2, ROWS[2]), 1: Position(2, ROWS[2])}


def test_an_open_transaction_is_waited_for_but_not_on_partitions_of_others(settings: Settings, topic: str) -> None:
    """What may still be committed is never read as absent; another shard's open transaction is no concern."""
    with transaction(settings, "relay-0") as mine, transaction(settings, "relay-1") as other:
        mine.produce(topic, key="0", value=Position(1, ROWS[1]).encode(), partition=0)
        mine.commit_transaction(20)
        mine.begin_transaction()
        other.produce(topic, key="1", value=Position(1, ROWS[1]).encode(), partition=1)
        assert other.flush(20) == 0
        assert progress.read(settings.kafka, topic, [0], timeout_seconds=20) == {0: Position(1, ROWS[1])}
        with pytest.raises(KafkaUnavailable, match="a transaction is still open"):
            progress.read(settings.kafka, topic, [0, 1], timeout_seconds=1)
        other.commit_transaction(20)
        other.begin_transaction()
        found = progress.read(settings.kafka, topic, [0, 1], timeout_seconds=20)
        assert found == {0: Position(1, ROWS[1]), 1: Position(1, ROWS[1])}
