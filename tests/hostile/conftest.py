"""One door a module for what only asks it; a door of its own for what changes or fills it."""

import contextlib
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException

from schemas.topics import TopicNames
from tallyhook.gateway.signing import SigningKey
from tallyhook.kafka import admin
from tallyhook.settings import Installation, KafkaSettings
from tests.hostile.doors import DoorUnderTest, open_door
from tests.integration.ingress.conftest import create_topics
from tests.integration.sinks.conftest import road

__all__ = ["door", "own_installation", "road"]

REMOVAL_SECONDS = 10.0


@pytest.fixture(scope="module")
def own_installation(kafka_bootstrap: str) -> Iterator[Installation]:
    """Topics that no other module has."""
    name = f"h{uuid.uuid4().hex[:12]}"
    made = Installation(topic_prefix=name, schema_=name)
    settings = KafkaSettings(bootstrap=kafka_bootstrap)
    names = (TopicNames(name).events, TopicNames(name).dead_letters, TopicNames(made.test_prefix).events)
    create_topics(settings, dict.fromkeys(names, made.partitions))
    yield made
    # Cleaning is a courtesy to the tests that follow: a test must not fail by it.
    with contextlib.suppress(KafkaException):
        for outcome in admin(settings).delete_topics(list(names), operation_timeout=REMOVAL_SECONDS).values():
            outcome.result(REMOVAL_SECONDS)


@pytest.fixture(scope="module")
def door(kafka_bootstrap: str, own_installation: Installation) -> Iterator[DoorUnderTest]:
    """A ready ingress process of this module, with the limits that are the default."""
    with open_door(kafka_bootstrap, own_installation, SigningKey.generate()) as opened:
        yield opened
