"""The lag of a group on real Kafka, asked for by somebody who is no member of it."""

import time
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from tallyhook.clock import SystemClock
from tallyhook.errors import KafkaUnavailable
from tallyhook.kafka import admin, client_config, producer
from tallyhook.lag import LagWatch
from tallyhook.lag_reader import LagReader, Waiting, quiet_client
from tallyhook.metrics import Metrics
from tallyhook.settings import Installation, KafkaSettings
from tests.integration.relay.waiting import eventually

PATIENCE_SECONDS = 20.0
PARTITIONS = 2


class Topic:
    """A topic of the test's own, a group that reads it, and what both have."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self.kafka = kafka
        self.name = self.group = f"lag-{uuid.uuid4().hex[:10]}"
        client = admin(kafka)
        wanted = NewTopic(self.name, PARTITIONS, 1, config={"retention.ms": "3600000"})
        client.create_topics([wanted], operation_timeout=10)[self.name].result(PATIENCE_SECONDS)

    def write(self, partition: int, *ages_seconds: float, transactional: bool = False) -> None:
        """Records that came so many seconds ago; a transaction leaves its marker behind them."""
        now = time.time()
        client = self._producer(transactional)
        if transactional:
            client.init_transactions(PATIENCE_SECONDS)
            client.begin_transaction()
        for age in ages_seconds:
            client.produce(self.name, b"value", partition=partition, timestamp=int((now - age) * 1000))
        assert client.flush(PATIENCE_SECONDS) == 0
        if transactional:
            client.commit_transaction(PATIENCE_SECONDS)

    def commit(self, partition: int, offset: int) -> None:
        """What the group has processed."""
        consumer = Consumer(client_config(self.kafka) | {"group.id": self.group, "enable.auto.commit": False})
        try:
            consumer.commit(offsets=[TopicPartition(self.name, partition, offset)], asynchronous=False)
        finally:
            consumer.close()

    def reader(self) -> LagReader:
        """Asks about the group."""
        return LagReader(self.kafka, quiet_client(self.kafka), self.name, self.group, PARTITIONS)

    def _producer(self, transactional: bool) -> Producer:
        return producer(
            self.kafka,
            linger_ms=1,
            delivery_timeout_seconds=PATIENCE_SECONDS,
            transactional_id=self.name if transactional else None,
            on_fatal=lambda _: None,
        )


@pytest.fixture
def topic(kafka_settings: KafkaSettings) -> Iterator[Topic]:
    """One of the test's own."""
    made = Topic(kafka_settings)
    yield made
    client = admin(kafka_settings)
    client.delete_topics([made.name])[made.name].result(PATIENCE_SECONDS)


@pytest.fixture
def reader(topic: Topic) -> Iterator[LagReader]:
    """Asks about the topic's group."""
    made = topic.reader()
    yield made
    made.close()


def ask(reader: LagReader) -> dict[int, Waiting]:
    """As the watch does: asks again where the coordinator is not known yet."""

    def answer() -> dict[int, Waiting] | None:
        try:
            return reader.read()
        except KafkaUnavailable:
            return None

    found = eventually("the broker answers", answer, PATIENCE_SECONDS)
    assert found is not None
    return found


def age(waiting: Waiting) -> float:
    """Seconds since the oldest record came."""
    assert waiting.oldest_timestamp is not None
    return time.time() - waiting.oldest_timestamp


def test_a_group_that_never_came_is_late_by_all(topic: Topic, reader: LagReader) -> None:
    """Everything waits, since the first record came; an empty partition has no lag."""
    topic.write(0, 600, 30, 1)
    found = ask(reader)
    assert (found[0].records, found[1]) == (3, Waiting(0, None))
    assert age(found[0]) == pytest.approx(600, abs=20)
    assert reader.retention_seconds() == 3600


def test_the_first_record_behind_the_position_counts(topic: Topic, reader: LagReader) -> None:
    """As the group goes on the age becomes that of the next record, and in the end nothing waits."""
    topic.write(0, 600, 300, 1)
    topic.commit(0, 1)
    found = ask(reader)
    assert found[0].records == 2
    assert age(found[0]) == pytest.approx(300, abs=20)
    topic.commit(0, 3)
    assert ask(reader)[0] == Waiting(0, None)
    topic.write(0, 50)
    # It waits for less than the time between two looks: its age is not asked for yet.
    assert ask(reader)[0] == Waiting(1, None)
    found = ask(reader)
    assert age(found[0]) == pytest.approx(50, abs=20)


def test_the_marker_of_a_transaction_is_no_lag(topic: Topic, reader: LagReader) -> None:
    """Nobody is ever given it, so no position passes it; a record behind it counts again."""
    topic.write(1, 100, transactional=True)
    topic.commit(1, 1)
    ask(reader)
    assert ask(reader)[1] == Waiting(0, None)
    topic.write(1, 40)
    ask(reader)
    found = ask(reader)
    assert found[1].records > 0
    assert age(found[1]) == pytest.approx(40, abs=20)


def test_a_broker_that_is_away_is_told(topic: Topic) -> None:
    """It is KafkaUnavailable, which the watch waits out."""
    nowhere = KafkaSettings(bootstrap="127.0.0.1:1")
    reader = LagReader(nowhere, quiet_client(nowhere), topic.name, topic.group, PARTITIONS)
    try:
        with pytest.raises(KafkaUnavailable):
            reader.read()
    finally:
        reader.close()


def test_the_watch_goes_on_where_topics_are_missing(kafka_settings: KafkaSettings, installation: Installation) -> None:
    """Nothing is known, which is said with the seconds; the thread lives on and ends when it is told to."""
    metrics = Metrics()
    watch = LagWatch(kafka_settings, installation, metrics, SystemClock())
    watch.start()

    def unknown() -> float:
        return metrics.registry.get_sample_value("tallyhook_lag_unknown_seconds", {"topic": "dead-letters"}) or 0.0

    eventually("it says for how long nothing is known", lambda: unknown() > 1, 40)
    assert watch.is_alive()
    watch.stop()
    eventually("it has ended", lambda: not watch.is_alive(), PATIENCE_SECONDS)
