"""The check that reading began where it was told to."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Message, TopicPartition

from sinks.first_records import FirstRecords
from tallyhook.errors import KafkaUnavailable
from tallyhook.kafka import plain_reader
from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings
from tests.integration.sinks.deliveries import deposit
from tests.integration.sinks.running import Running, running


@pytest.fixture
def stage(
    installation: Installation, kafka_settings: KafkaSettings, database_settings: DatabaseSettings, tmp_path: Path
) -> Iterator[Running]:
    """A topic with ten records in partition 0."""
    with running(installation, kafka_settings, database_settings, tmp_path) as made:
        made.publish(*(deposit(f"evt-{v}", "dep", v, "open") for v in range(10)), partition=0)
        yield made


def record(stage: Running, offset: int) -> Message:
    """The record at an offset of partition 0."""
    reader = plain_reader(stage.settings.kafka)
    try:
        reader.assign([TopicPartition(stage.names.state_changes, 0, offset)])
        (message,) = reader.consume(1, 30)
        return message
    finally:
        reader.close()


def test_a_client_that_began_too_late_is_found_out(stage: Running) -> None:
    """The position was 3 and the first record given out is 5: records 3 and 4 would be lost."""
    first = FirstRecords(stage.settings.kafka, stage.names.state_changes)
    first.expect(0, 3)
    with pytest.raises(KafkaUnavailable, match="read from 3 on and began at 5, the first record is 3"):
        first.check([record(stage, 5)])
    first.expect(0, 3)
    first.check([record(stage, 3)])
    first.check([record(stage, 7)])
