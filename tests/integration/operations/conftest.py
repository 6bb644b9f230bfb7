"""Installations for tests of the operator's commands."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings
from tests.integration.operations.operated import Operated, operated
from tests.integration.operations.sink_feed import SinkFeed
from tests.integration.operations.tiny_gateway import TinyGateway, tiny_gateway


@pytest.fixture
def quiet(
    kafka_settings: KafkaSettings, database_settings: DatabaseSettings, installation: Installation, tmp_path: Path
) -> Iterator[Operated]:
    """Tables of the test's own; no topics, and no stage runs."""
    made = operated(kafka_settings, database_settings, installation, tmp_path, with_topics=False)
    yield made
    made.close()


@pytest.fixture
def sink(quiet: Operated) -> Iterator[SinkFeed]:
    """The owner of a partition of the test's own tables."""
    made = SinkFeed(quiet)
    made.claim()
    yield made
    made.release()


@pytest.fixture(scope="package")
def busy(kafka_bootstrap: str, database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    """One installation with stream and sink for the tests of this folder; its payload limit is low."""
    name = f"t{uuid.uuid4().hex[:12]}"
    made = operated(
        KafkaSettings(bootstrap=kafka_bootstrap),
        DatabaseSettings(url=SecretStr(database_url)),
        Installation(topic_prefix=name, schema_=name),
        tmp_path_factory.mktemp("operated"),
    )
    try:
        made.start("stream", TALLYHOOK_STREAM_SESSION_TIMEOUT_SECONDS="6")
        made.start("sink", TALLYHOOK_SINK_MAX_PAYLOAD_BYTES="1024", TALLYHOOK_SINK_QUARANTINE_LIMIT="1000")
        yield made
    finally:
        made.close()


@pytest.fixture
def still(
    kafka_settings: KafkaSettings, database_settings: DatabaseSettings, installation: Installation, tmp_path: Path
) -> Iterator[Operated]:
    """Tables and topics of the test's own; no stage runs."""
    made = operated(kafka_settings, database_settings, installation, tmp_path)
    yield made
    made.close()


@pytest.fixture
def gateway() -> Iterator[TinyGateway]:
    """A gateway's API of the test's own."""
    with tiny_gateway() as made:
        yield made
