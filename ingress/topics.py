"""What the door must know of its topics before it may accept anything."""

from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from schemas.topics import TopicNames
from tallyhook import kafka
from tallyhook.errors import KafkaUnavailable, TopicMismatch
from tallyhook.settings import Installation, KafkaSettings

RECORD_OVERHEAD_BYTES = 16_384
"""Kept free below a topic's record limit for key, headers and framing."""

_DEFAULT_LIMIT_BYTES = 1_048_588


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """The installation's topics as the door found them.

    Args:
        test_events: whether the topic for `livemode: false` exists.
        record_limit_bytes: the smallest max.message.bytes of the topics it writes to.
        limit_of: the topic with that limit; None when the cluster did not say.
    """

    test_events: bool
    record_limit_bytes: int
    limit_of: str | None


def check(settings: KafkaSettings, installation: Installation, timeout_seconds: float) -> KnownTopics:
    """Looks at the topics; raises TopicMismatch or KafkaUnavailable. Blocks."""
    names = TopicNames(installation.topic_prefix)
    test_events = TopicNames(installation.test_prefix).events
    client = kafka.admin(settings)
    try:
        known = client.list_topics(timeout=timeout_seconds).topics
    except KafkaException as failure:
        raise KafkaUnavailable(f"Kafka at {settings.bootstrap}: {failure.args[0].str()}") from failure
    for name in (names.events, names.dead_letters):
        if name not in known:
            raise TopicMismatch(f"topic {name} does not exist: create it with `tallyhook topics apply`")
    found = len(known[names.events].partitions)
    if found != installation.partitions:
        raise TopicMismatch(
            f"topic {names.events} has {found} partitions, TALLYHOOK_PARTITIONS says {installation.partitions}: "
            "`tallyhook topics apply` shows the way"
        )
    written = [names.events, names.dead_letters] + [test_events] * (test_events in known)
    limits = _record_limits(client, written, timeout_seconds)
    smallest = min(limits, key=lambda name: limits[name]) if limits else None
    return KnownTopics(
        test_events=test_events in known,
        record_limit_bytes=limits[smallest] if smallest else _DEFAULT_LIMIT_BYTES,
        limit_of=smallest,
    )


def _record_limits(client: AdminClient, names: list[str], timeout_seconds: float) -> dict[str, int]:
    """max.message.bytes by topic; empty where the cluster does not let this client ask.

    The caller keeps the client: its answers fail once it is gone.
    """
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    asked = client.describe_configs(resources, request_timeout=timeout_seconds)
    try:
        return {resource.name: int(answer.result()["max.message.bytes"].value) for resource, answer in asked.items()}
    except KafkaException:
        return {}
