"""An installation with its tables and topics, and relays that end with the test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sinks.migrations import upgrade
from tallyhook.operations import topics
from tallyhook.settings import (
    DatabaseSettings,
    IngressSettings,
    Installation,
    KafkaSettings,
    ProcessSettings,
    RelaySettings,
    Settings,
    SinkSettings,
    StreamSettings,
)
from tests.integration.relay.effect_reader import EffectReader
from tests.integration.relay.outbox_rows import OutboxWriter
from tests.integration.relay.relay_process import RelayProcess

PARTITIONS = 4

StartRelay = Callable[..., RelayProcess]


@pytest.fixture
def bare_settings(
    installation: Installation, kafka_settings: KafkaSettings, database_settings: DatabaseSettings
) -> Settings:
    """Of an installation that has neither tables nor topics yet."""
    return Settings(
        installation=installation.model_copy(update={"partitions": PARTITIONS}),
        kafka=kafka_settings,
        database=database_settings,
        process=ProcessSettings(),
        ingress=IngressSettings(),
        stream=StreamSettings(),
        sink=SinkSettings(),
        relay=RelaySettings(),
    )


@pytest.fixture
def settings(bare_settings: Settings) -> Settings:
    """Of an installation whose tables and topics are there."""
    upgrade(bare_settings.database, bare_settings.installation)
    topics.apply(bare_settings)
    return bare_settings


@pytest.fixture
def writer(settings: Settings) -> Iterator[OutboxWriter]:
    """Writes the outbox as a sink does."""
    made = OutboxWriter(settings)
    yield made
    made.connection.close()


@pytest.fixture
def reader(settings: Settings) -> EffectReader:
    """Reads the effects as a downstream service does."""
    return EffectReader(settings)


@pytest.fixture
def start_relay(bare_settings: Settings, tmp_path: Path) -> Iterator[StartRelay]:
    """Starts a relay; keyword arguments are further environment variables."""
    started: list[RelayProcess] = []

    def start(**env: str) -> RelayProcess:
        relay = RelayProcess(bare_settings, tmp_path / f"relay-{len(started)}.log", **env)
        started.append(relay)
        return relay

    yield start
    for relay in started:
        if relay.exit_code is None:
            relay.kill()
