"""The check before any work: the topic is the one that was installed, with the installation's partition count."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection

from schemas.topics import TopicNames
from tallyhook import kafka, topic_rules
from tallyhook.errors import KafkaUnavailable, TopicMismatch
from tallyhook.postgres import Connection, Queries
from tallyhook.settings import Settings

NEXT_STEP = "run `tallyhook topics apply`"

_kept: set[str] = set()
"""Ids of topics that this process found to keep their records: a sink that works does not stop over a retention that
was lowered under it, for then more would be deleted unread. There are two of them.
"""


def check_topic(settings: Settings, connection: Connection, topic: str) -> str:
    """The broker's id of the topic.

    Raises:
        TopicMismatch: it is missing, was never recorded, differs from what `tallyhook topics apply` recorded, or
            at the process's start is configured to lose records.
        KafkaUnavailable: the broker does not answer.
    """
    queries = Queries("sinks", "sql/fence.sql", settings.installation.schema_name)
    row = connection.execute(queries["installed_topic"], (topic,)).fetchone()
    if row is None:
        raise TopicMismatch(f"topic {topic} is not recorded in {settings.installation.schema_name}: {NEXT_STEP}")
    recorded_id, recorded_partitions = row
    topic_id, partitions = _describe(settings, topic)
    wanted = settings.installation.partitions
    if (partitions, recorded_partitions) != (wanted, wanted):
        raise TopicMismatch(
            f"topic {topic} has {partitions} partitions, recorded are {recorded_partitions}, the installation has"
            f" {wanted} (TALLYHOOK_PARTITIONS): a key would move to another partition; set it right or {NEXT_STEP}"
        )
    if topic_id != recorded_id:
        raise TopicMismatch(
            f"topic {topic} was deleted and made anew (id {recorded_id}, now {topic_id}): stored positions name records"
            f" that are gone. Restore it, or install under a new prefix and schema and {NEXT_STEP}"
        )
    if topic_id not in _kept:
        specs = [spec for spec in TopicNames(settings.installation.topic_prefix).specs() if spec.name == topic]
        topic_rules.check(settings.kafka, specs, settings.kafka.request_timeout_seconds)
        _kept.add(topic_id)
    return topic_id


def _describe(settings: Settings, topic: str) -> tuple[str, int]:
    seconds = settings.kafka.request_timeout_seconds
    admin = kafka.admin(settings.kafka)  # held to the end: a client that is collected cancels what was asked
    try:
        answers: Mapping[str, Any] = admin.describe_topics(TopicCollection([topic]), request_timeout=seconds)
        found = answers[topic].result(seconds)
    except KafkaException as failure:
        error = failure.args[0]
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise TopicMismatch(f"topic {topic} does not exist: {NEXT_STEP}") from failure
        raise KafkaUnavailable(f"topic {topic} cannot be described: {kafka.words(error)}") from failure
    except TimeoutError as failure:
        raise KafkaUnavailable(f"topic {topic} cannot be described within {seconds:g} s") from failure
    return str(found.topic_id), len(found.partitions)
