"""What tests put into a stack and look for again."""

import psycopg
from confluent_kafka.admin import NewTopic

from tallyhook.kafka import admin, producer, read_to_end
from tallyhook.local.stack import LocalStack
from tallyhook.settings import KafkaSettings

TOPIC = "kept"


def put(stack: LocalStack, text: str) -> None:
    """One record, acknowledged, and one row, committed."""
    kafka = KafkaSettings(bootstrap=stack.kafka_bootstrap)
    client = admin(kafka)
    if TOPIC not in client.list_topics(timeout=10).topics:
        client.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(10)
    outcomes: list[object] = []
    sender = producer(kafka, linger_ms=0, delivery_timeout_seconds=10, on_fatal=lambda _error: None)
    sender.produce(TOPIC, text.encode(), on_delivery=lambda error, _message: outcomes.append(error))
    assert sender.flush(10) == 0
    assert outcomes == [None]
    put_row(stack.database_url, text)


def put_row(database_url: str, text: str) -> None:
    """One row, committed."""
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (id int GENERATED ALWAYS AS IDENTITY, text text)")
        connection.execute("INSERT INTO kept (text) VALUES (%s)", [text])


def records(stack: LocalStack) -> list[str]:
    """The values of the topic in order."""
    kafka = KafkaSettings(bootstrap=stack.kafka_bootstrap)
    return [(message.value() or b"").decode() for message in read_to_end(kafka, TOPIC, timeout_seconds=15)]


def rows(stack: LocalStack) -> list[str]:
    """The texts of the table in order."""
    return rows_of(stack.database_url)


def rows_of(database_url: str) -> list[str]:
    """The same of a database alone."""
    with psycopg.connect(database_url) as connection:
        return [str(row[0]) for row in connection.execute("SELECT text FROM kept ORDER BY id")]
