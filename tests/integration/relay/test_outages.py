"""Kafka or PostgreSQL away: the relay waits, says so, and goes on by itself; nothing is sent twice or left out."""

import os
import signal
from collections.abc import Iterator
from functools import partial

import pytest

from sinks.migrations import upgrade
from tallyhook.local.stack import LocalStack
from tallyhook.local.stack import local_stack as make_local_stack
from tallyhook.operations import topics
from tallyhook.settings import DatabaseSettings, KafkaSettings, Settings
from tests.integration.relay.conftest import StartRelay
from tests.integration.relay.effect_reader import EffectReader
from tests.integration.relay.outbox_rows import Load, OutboxWriter
from tests.integration.relay.relay_process import RelayProcess
from tests.integration.relay.waiting import eventually


@pytest.fixture(scope="module")
def own_stack(local_stack: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Servers whose processes are ours to stop: the run's, or another pair where the run was given others'."""
    if local_stack.kafka.pid is not None:
        yield local_stack
        return
    stack = make_local_stack(
        tmp_path_factory.mktemp("own"),
        KafkaSettings(bootstrap=None),
        DatabaseSettings(url=None),
        lambda _progress: None,
    )
    with stack:
        yield stack
    stack.discard()


@pytest.fixture
def kafka_bootstrap(own_stack: LocalStack) -> str:
    """Of the broker that is stopped."""
    return own_stack.kafka_bootstrap


@pytest.fixture
def database_url(own_stack: LocalStack) -> str:
    """Of the database beside it."""
    return own_stack.database_url


def test_a_frozen_broker_is_waited_for(
    start_relay: StartRelay, settings: Settings, writer: OutboxWriter, reader: EffectReader, own_stack: LocalStack
) -> None:
    """A broker that hangs for seconds under load is told on /readyz, and afterwards every row is there once."""
    relay = start_relay()
    relay.await_active()
    with Load(writer):
        eventually("it sends", lambda: (relay.metric("tallyhook_relay_sent_total") or 0) > 100)
        _signal_kafka(own_stack, signal.SIGSTOP)
        try:
            reasons = eventually("it says that Kafka is away", lambda: relay.status("/readyz")[1])
            assert "Kafka does not answer" in reasons[0]
            assert relay.status("/livez") == (200, [])
            eventually("the backlog is seen to grow", lambda: (relay.metric("tallyhook_relay_backlog_rows") or 0) > 100)
        finally:
            _signal_kafka(own_stack, signal.SIGCONT)
        eventually("it goes on", lambda: relay.status("/readyz") == (200, []), seconds=30)
    eventually("everything is sent", lambda: reader.has(writer.expected()), seconds=30)
    assert relay.exit_code is None
    assert relay.stop() == 0


def test_a_stop_while_kafka_hangs_is_bounded(
    start_relay: StartRelay, settings: Settings, writer: OutboxWriter, reader: EffectReader, own_stack: LocalStack
) -> None:
    """SIGTERM with an open transaction and no answer ends the process all the same; the next one settles the rest."""
    relay = start_relay()
    relay.await_active()
    _signal_kafka(own_stack, signal.SIGSTOP)
    try:
        writer.add(20, notify=True)
        eventually("it says that Kafka is away", lambda: relay.status("/readyz")[1])
        assert relay.stop() == 0
    finally:
        _signal_kafka(own_stack, signal.SIGCONT)
    following = start_relay()
    eventually("everything is sent", lambda: reader.has(writer.expected()), seconds=30)
    assert following.exit_code is None


@pytest.mark.chaos
def test_a_killed_broker_is_waited_for(
    start_relay: StartRelay, settings: Settings, writer: OutboxWriter, reader: EffectReader, own_stack: LocalStack
) -> None:
    """A broker killed and started again under load: the relay stays or is replaced, every row is there once."""
    relay = start_relay()
    relay.await_active()
    with Load(writer):
        eventually("it sends", lambda: (relay.metric("tallyhook_relay_sent_total") or 0) > 100)
        _signal_kafka(own_stack, signal.SIGKILL)
        eventually("the broker is gone", lambda: not own_stack.kafka.running())
        own_stack.kafka.start()
    eventually("everything is sent", lambda: reader.has(writer.expected()), seconds=60)
    assert relay.exit_code is None


def test_lost_database_sessions_are_replaced(
    start_relay: StartRelay, settings: Settings, writer: OutboxWriter, reader: EffectReader
) -> None:
    """Each time every session of the relay is ended under load it comes back by itself, with every row once."""
    relay = start_relay()
    relay.await_active()
    # Batches that are read in several portions, so that some sessions end in the middle of a transaction.
    with Load(writer, rows=300, pause_seconds=0.1):
        for _ in range(5):
            enough = (relay.metric("tallyhook_relay_sent_total") or 0) + 100
            eventually("it sends", partial(_has_sent, relay, enough))
            eventually("its sessions are ended", writer.end_relay_sessions)
    eventually("everything is sent", lambda: reader.has(writer.expected()))
    assert relay.status("/readyz") == (200, [])
    assert relay.stop() == 0


def test_it_waits_for_its_tables_and_topics(start_relay: StartRelay, bare_settings: Settings) -> None:
    """Started before the installation is complete, it says what is missing and begins once that is there."""
    relay = start_relay()
    eventually("it asks for tables", lambda: "run `tallyhook migrate`" in "".join(relay.status("/readyz")[1]))
    upgrade(bare_settings.database, bare_settings.installation)
    eventually("it asks for topics", lambda: "run `tallyhook topics apply`" in "".join(relay.status("/readyz")[1]))
    topics.apply(bare_settings)
    writer = OutboxWriter(bare_settings)
    writer.add(1)
    writer.connection.close()
    eventually("it sends", lambda: relay.metric("tallyhook_relay_sent_total") == 4)
    assert relay.status("/readyz") == (200, [])


def _has_sent(relay: RelayProcess, rows: float) -> bool:
    return (relay.metric("tallyhook_relay_sent_total") or 0) >= rows


def _signal_kafka(stack: LocalStack, number: signal.Signals) -> None:
    assert stack.kafka.pid is not None
    os.kill(stack.kafka.pid, number)
