"""`topics apply`: creates, repairs, records, and refuses what would move keys or lose positions."""

from dataclasses import replace

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, ResourceType
from psycopg import sql

from schemas.topics import TopicNames
from sinks import migrations
from tallyhook import kafka
from tallyhook.errors import TopicMismatch
from tallyhook.operations import topics
from tallyhook.postgres import connect
from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings, Settings, load
from tests.running import await_true


@pytest.fixture
def settings(
    kafka_settings: KafkaSettings, database_settings: DatabaseSettings, installation: Installation
) -> Settings:
    """An installation with tables and no topics yet."""
    migrations.upgrade(database_settings, installation)
    return replace(load(), installation=installation, kafka=kafka_settings, database=database_settings)


def recorded(settings: Settings) -> dict[str, tuple[str, int]]:
    """What the database remembers of the topics."""
    with connect(settings.database, "test") as connection:
        rows = connection.execute(
            sql.SQL("SELECT topic, topic_id, partitions FROM {}").format(
                sql.Identifier(settings.installation.schema_name, "installed_topics")
            )
        ).fetchall()
    return {topic: (topic_id, partitions) for topic, topic_id, partitions in rows}


def state_of(settings: Settings, name: str) -> str:
    """What `show` says of one topic."""
    return next(status.state for status in topics.show(settings) if status.name == name)


def test_apply_creates_and_records_and_can_be_repeated(settings: Settings) -> None:
    """All topics, the test mode's events too, with the installation's partition count; a second run changes nothing."""
    assert {status.state for status in topics.show(settings)} == {"missing: run `tallyhook topics apply`"}
    made = topics.apply(settings)
    assert {status.state for status in made} == {"created"}
    assert {status.partitions for status in made} == {settings.installation.partitions}
    names = {status.name for status in made}
    assert TopicNames(settings.installation.test_prefix).events in names
    assert TopicNames(settings.installation.topic_prefix).effect("release_goods") in names
    before = recorded(settings)
    assert before == {status.name: (status.topic_id, status.partitions) for status in made}
    assert {status.state for status in topics.apply(settings)} == {"ok"}
    assert recorded(settings) == before


def test_apply_sets_a_wrong_retention_right(settings: Settings) -> None:
    """`show` names what differs, `apply` repairs it: retention and the number of replicas that must have a record."""
    topics.apply(settings)
    name = TopicNames(settings.installation.topic_prefix).dead_letters
    wrong = {"retention.ms": "1000", "min.insync.replicas": "2"}
    change = ConfigResource(
        ResourceType.TOPIC,
        name,
        incremental_configs=[
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in wrong.items()
        ],
    )
    client = kafka.admin(settings.kafka)
    for future in client.incremental_alter_configs([change]).values():
        future.result(20)
    wanted = "config retention.ms=1000 instead of 3888000000, min.insync.replicas=2 instead of 1"
    await_true(lambda: state_of(settings, name) == wanted, 10, f"`show` to say: {wanted}")
    topics.apply(settings)
    assert all(status.right for status in topics.show(settings))


def test_another_partition_count_is_refused(settings: Settings) -> None:
    """A grown topic would put keys elsewhere."""
    topics.apply(settings)
    name = TopicNames(settings.installation.topic_prefix).events
    client = kafka.admin(settings.kafka)
    client.create_partitions([NewPartitions(name, 9)])[name].result(20)
    await_true(lambda: "has 9 partitions" in state_of(settings, name), 10, "the broker to know the new partition")
    with pytest.raises(TopicMismatch, match=f"{name}: has 9 partitions, the installation has 8"):
        topics.apply(settings)


def test_a_topic_made_anew_is_refused(settings: Settings) -> None:
    """Its id is another one, and stored positions would name other records."""
    topics.apply(settings)
    name = TopicNames(settings.installation.topic_prefix).state_changes
    client = kafka.admin(settings.kafka)
    client.delete_topics([name])[name].result(20)
    await_true(lambda: state_of(settings, name).startswith("missing"), 10, "the broker to forget the topic")
    with pytest.raises(TopicMismatch, match=f"{name} is not the one that was installed"):
        topics.apply(settings)
