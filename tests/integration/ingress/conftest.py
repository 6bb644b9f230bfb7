"""An ingress with topics of its own for each test."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import NewTopic

from schemas.topics import TopicNames
from tallyhook.gateway.signing import SigningKey
from tallyhook.kafka import admin, read_to_end
from tallyhook.settings import Installation, KafkaSettings
from tests.integration.ingress.process import IngressProcess, running

Start = Callable[..., IngressProcess]


@pytest.fixture
def key() -> SigningKey:
    """The gateway's key."""
    return SigningKey.generate()


@pytest.fixture
def names(installation: Installation) -> TopicNames:
    """The test's topics."""
    return TopicNames(installation.topic_prefix)


@pytest.fixture
def environment(kafka_settings: KafkaSettings, installation: Installation, key: SigningKey) -> dict[str, str]:
    """The settings of an ingress of this test."""
    assert kafka_settings.bootstrap is not None
    return {
        "TALLYHOOK_KAFKA_BOOTSTRAP": kafka_settings.bootstrap,
        "TALLYHOOK_TOPIC_PREFIX": installation.topic_prefix,
        "TALLYHOOK_SCHEMA": installation.schema_name,
        "TALLYHOOK_INGRESS_PUBLIC_KEYS": f"k1={key.public_text()}",
        "TALLYHOOK_INGRESS_MERCHANT_ID": "mer_1",
        "TALLYHOOK_INGRESS_ANNOUNCE_SECONDS": "0.2",
    }


@pytest.fixture
def topics(kafka_settings: KafkaSettings, installation: Installation, names: TopicNames) -> TopicNames:
    """The topics that the door writes to exist."""
    create_topics(
        kafka_settings,
        {
            names.events: installation.partitions,
            names.dead_letters: installation.partitions,
            TopicNames(installation.test_prefix).events: installation.partitions,
        },
    )
    return names


def create_topics(settings: KafkaSettings, partitions: dict[str, int], config: dict[str, str] | None = None) -> None:
    """Creates topics and waits until each can be seen."""
    made = [NewTopic(name, count, 1, config=config or {}) for name, count in partitions.items()]
    client = admin(settings)
    for answer in client.create_topics(made, operation_timeout=20).values():
        answer.result(30)


@pytest.fixture
def start(environment: dict[str, str], key: SigningKey) -> Iterator[Start]:
    """Starts further processes with other settings."""
    with ExitStack() as stack:

        def begin(*, ready: bool = True, **settings: str) -> IngressProcess:
            process: AbstractContextManager[IngressProcess] = running(environment | settings, key, ready=ready)
            return stack.enter_context(process)

        yield begin


@pytest.fixture
def ingress(topics: TopicNames, start: Start) -> IngressProcess:
    """A ready ingress with the default settings."""
    return start()


@pytest.fixture
def records(kafka_settings: KafkaSettings) -> Callable[[str], list[Message]]:
    """Every record of a topic."""
    return lambda topic: read_to_end(kafka_settings, topic, timeout_seconds=20)
