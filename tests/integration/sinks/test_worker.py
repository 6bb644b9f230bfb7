"""The worker process on real Kafka and PostgreSQL."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings
from tests.integration.sinks.conftest import Road
from tests.integration.sinks.deliveries import deposit
from tests.integration.sinks.running import Running, running, until


@pytest.fixture
def stage(
    road: Road,
    installation: Installation,
    kafka_settings: KafkaSettings,
    database_settings: DatabaseSettings,
    tmp_path: Path,
) -> Iterator[Running]:
    """Topics and workers on the test's schema."""
    with running(installation, kafka_settings, database_settings, tmp_path) as made:
        yield made


def test_what_is_published_is_applied_and_sigterm_ends_cleanly(road: Road, stage: Running) -> None:
    """Each deposit is credited once; SIGTERM ends with 0 and leaves the positions where the topic ends."""
    ids = [f"dep-{number}" for number in range(40)]
    road.correlate(*ids)
    worker = stage.worker()
    stage.publish(*(deposit(f"evt-{key}-1", key, 1, "open") for key in ids))
    stage.publish(*(deposit(f"evt-{key}-2", key, 2, "settled") for key in ids))
    until(lambda: road.one("SELECT count(*) FROM pg_webhook_inbox") == 80, stage.workers)
    assert worker.end() == 0
    assert road.one("SELECT count(*) FROM pg_user_balance_entries") == 40
    assert road.one("SELECT sum(next_offset) FROM sink_offsets WHERE topic = %s", (stage.names.state_changes,)) == 80
    assert '"event": "stopped"' in worker.log()
