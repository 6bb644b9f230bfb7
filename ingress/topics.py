"""What the door must know of its topics before it may accept anything."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaException

from schemas.door import MAX_PROOF_BYTES
from schemas.topics import TopicNames
from tallyhook import kafka, topic_rules
from tallyhook.errors import KafkaUnavailable, TopicMismatch
from tallyhook.settings import Installation, KafkaSettings

_LEAST_OVERHEAD_BYTES = 16_384
_TEXTS = 12
"""Texts of a record that may have the length of an id: the key, webhook-id, the source, seven of the envelope, and the
status before, which the stream adds.
"""
_FIXED_BYTES = 1024

_DEFAULT_LIMIT_BYTES = 1_048_588


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """The installation's topics as the door found them.

    Args:
        test_events: whether the topic for `livemode: false` exists.
        record_limits_bytes: max.message.bytes of each topic that will hold the bodies, the stream's output too;
            empty when the cluster did not say.
        configs: the configurations of the topics that the door writes to, as far as the cluster told them.
    """

    test_events: bool
    record_limits_bytes: Mapping[str, int]
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def record_limit_bytes(self) -> int:
        """The smallest limit, Kafka's own default where none is known."""
        return min(self.record_limits_bytes.values(), default=_DEFAULT_LIMIT_BYTES)

    def body_limit_bytes(self, overhead_bytes: int) -> int:
        """The largest body that fits into a record of every topic, with key and headers."""
        return max(0, self.record_limit_bytes - overhead_bytes)


def record_overhead_bytes(max_id_bytes: int) -> int:
    """Kept free below a topic's record limit for key, headers and framing: 16 KiB, more where ids may be long."""
    return max(_LEAST_OVERHEAD_BYTES, MAX_PROOF_BYTES + _TEXTS * max_id_bytes + _FIXED_BYTES)


def check(settings: KafkaSettings, installation: Installation, timeout_seconds: float) -> KnownTopics:
    """Looks at the topics; raises TopicMismatch or KafkaUnavailable. Blocks."""
    names = TopicNames(installation.topic_prefix)
    client = kafka.admin(settings)
    try:
        known = client.list_topics(timeout=timeout_seconds).topics
    except KafkaException as failure:
        raise KafkaUnavailable(f"Kafka at {settings.bootstrap}: {kafka.words(failure.args[0])}") from failure
    for name in (names.events, names.dead_letters):
        if name not in known:
            raise TopicMismatch(
                f"topic {name} does not exist, or this user may not see it: create it with `tallyhook topics apply`,"
                " or give the rights that `tallyhook topics acl` prints"
            )
    found = len(known[names.events].partitions)
    if found != installation.partitions:
        raise TopicMismatch(
            f"topic {names.events} has {found} partitions, TALLYHOOK_PARTITIONS says {installation.partitions}: "
            "`tallyhook topics apply` shows the way"
        )
    test_names = TopicNames(installation.test_prefix)
    holding = (names.events, names.dead_letters, names.state_changes, test_names.events, test_names.state_changes)
    present = [name for name in holding if name in known]
    configs = topic_rules.configs(client, present, timeout_seconds)
    limits = {name: int(told["max.message.bytes"]) for name, told in configs.items() if "max.message.bytes" in told}
    return KnownTopics(test_names.events in known, limits, configs)


def refuse_losses(known: KnownTopics, installation: Installation) -> None:
    """Raises TopicMismatch when a topic that the door writes to would lose what it promised to keep."""
    names, test_names = TopicNames(installation.topic_prefix), TopicNames(installation.test_prefix)
    written = [names.events, names.dead_letters] + ([test_names.events] if known.test_events else [])
    specs = [spec for spec in (*names.specs(), *test_names.specs()) if spec.name in written]
    topic_rules.refuse_faults(specs, known.configs)
