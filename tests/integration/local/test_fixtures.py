"""The fixtures that every integration test builds on."""

import psycopg
import pytest
from confluent_kafka.admin import NewTopic
from psycopg import sql

from tallyhook.kafka import admin
from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings

seen: list[Installation] = []


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_has_an_installation_of_its_own(
    turn: int, kafka_settings: KafkaSettings, database_settings: DatabaseSettings, installation: Installation
) -> None:
    """Two tests may create the same topic and table: they meet neither each other's nor leftovers."""
    topic = f"{installation.topic_prefix}.events"
    client = admin(kafka_settings)
    client.create_topics([NewTopic(topic, 1)])[topic].result(10)
    assert database_settings.url is not None
    with psycopg.connect(database_settings.url.get_secret_value(), autocommit=True) as connection:
        schema = sql.Identifier(installation.schema_name)
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
        connection.execute(sql.SQL("CREATE TABLE {}.t (turn int)").format(schema))
        for earlier in seen:
            query = "SELECT count(*) FROM pg_namespace WHERE nspname = %s"
            row = connection.execute(query, [earlier.schema_name]).fetchone()
            assert row == (0,)
    assert installation not in seen
    seen.append(installation)
