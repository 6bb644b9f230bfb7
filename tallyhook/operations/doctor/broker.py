"""What Kafka tells: topics with ids, replicas and configurations, the broker's own settings, ends of partitions."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from tallyhook import kafka, topic_rules
from tallyhook.errors import KafkaUnavailable
from tallyhook.settings import KafkaSettings

T = TypeVar("T")

_LEADERLESS = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
_ELECTION_SECONDS = 0.1


def once_led(ask: Callable[[], T], timeout_seconds: float) -> T:
    """Asks again while a partition or a group has no leader, as just after its topic was made or a broker started.

    Raises KafkaUnavailable as `ask` does, for that reason only after `timeout_seconds`.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            return ask()
        except KafkaUnavailable as failure:
            cause = failure.__cause__
            leaderless = isinstance(cause, KafkaException) and cause.args[0].code() in _LEADERLESS
            if not leaderless or time.monotonic() > deadline:
                raise
        time.sleep(_ELECTION_SECONDS)


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic as it is.

    Args:
        replication: replicas of the partition that has the fewest.
        config: as far as it was told.
    """

    name: str
    topic_id: str
    partitions: int
    replication: int
    config: Mapping[str, str] = field(default_factory=dict)


class Broker:
    """Asks the cluster; each question is bounded in time, and nothing is changed.

    Every method raises KafkaUnavailable when no answer comes.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._timeout_seconds = settings.request_timeout_seconds
        self._admin: AdminClient = kafka.admin(settings)

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        """Those of the topics that exist."""
        asked = self._admin.describe_topics(TopicCollection(list(names)), request_timeout=self._timeout_seconds)
        found = {}
        for name, answer in asked.items():
            described = self._answer(answer, f"topic {name}", fine=KafkaError.UNKNOWN_TOPIC_OR_PART)
            if described is not None:
                replication = min((len(part.replicas) for part in described.partitions), default=0)
                found[name] = (str(described.topic_id), len(described.partitions), replication)
        configs = topic_rules.configs(self._admin, list(found), self._timeout_seconds)
        return {name: Topic(name, *facts, config=configs.get(name, {})) for name, facts in found.items()}

    def settings(self) -> dict[str, str]:
        """The configuration of one of the brokers; empty when it may not be told to this client."""
        try:
            brokers = self._admin.list_topics(timeout=self._timeout_seconds).brokers
        except KafkaException as failure:
            raise self._silence("the list of brokers", kafka.words(failure.args[0])) from failure
        if not brokers:
            return {}
        resource = ConfigResource(ResourceType.BROKER, str(min(brokers)))
        answer = self._admin.describe_configs([resource], request_timeout=self._timeout_seconds)[resource]
        try:
            entries = answer.result(self._timeout_seconds + 1)
        except (KafkaException, TimeoutError):
            return {}
        return {name: str(entry.value) for name, entry in entries.items() if entry.value is not None}

    def lows(self, topics: Sequence[Topic]) -> dict[tuple[str, int], int]:
        """The first offset of each partition that is still there."""
        earliest = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
        return once_led(lambda: self._offsets(topics, earliest), self._timeout_seconds)

    def highs(self, topics: Sequence[Topic]) -> dict[tuple[str, int], int]:
        """The offset of the next record of each partition."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        return once_led(lambda: self._offsets(topics, latest), self._timeout_seconds)

    def _offsets(self, topics: Sequence[Topic], which: OffsetSpec) -> dict[tuple[str, int], int]:
        places = [TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)]
        if not places:
            return {}
        asked = self._admin.list_offsets(dict.fromkeys(places, which), request_timeout=self._timeout_seconds)
        found: dict[tuple[str, int], int] = {}
        for place, answer in asked.items():
            told: Any = self._answer(answer, f"offsets of {place.topic}[{place.partition}]")
            found[place.topic, place.partition] = told.offset
        return found

    def _answer(self, future: "Future[T]", question: str, *, fine: int | None = None) -> T | None:
        """What the broker answered; None where it answered with the error that is `fine`."""
        try:
            return future.result(self._timeout_seconds + 1)
        except TimeoutError as failure:
            raise self._silence(question, "no answer") from failure
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() == fine:
                return None
            raise self._silence(question, kafka.words(error)) from failure

    def _silence(self, question: str, reason: str) -> KafkaUnavailable:
        return KafkaUnavailable(f"Kafka at {self._settings.bootstrap}, {question}: {reason}")
