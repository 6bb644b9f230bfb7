"""Who asks for positions while a broker comes back must not go on asking with what it remembers from that moment."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tallyhook.kafka import admin
from tallyhook.lag_reader import quiet_client
from tallyhook.local.jars import default_cache_dir
from tallyhook.local.kafka_server import KafkaServer
from tallyhook.local.ports import Ports
from tallyhook.settings import KafkaSettings
from tests.chaos.tally import TALLY
from tests.running import await_true

TOPIC, PARTITIONS = "positions", 4
CLIENTS, BACK_SECONDS, SOON_SECONDS = 3, 60.0, 20.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaServer]:
    """A broker of this test's own, since it is going to be killed."""
    server = KafkaServer(tmp_path / "broker", Ports(tmp_path / "broker"), default_cache_dir(), lambda _: None)
    server.prepare()
    server.start()
    yield server
    server.stop()
    server.discard()


def answer(client: AdminClient) -> str:
    """What comes of the question for the ends of the topic: "ok" or Kafka's words."""
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    places = {TopicPartition(TOPIC, number): latest for number in range(PARTITIONS)}
    try:
        for found in client.list_offsets(places, request_timeout=2).values():
            found.result()
    except KafkaException as failure:
        return str(failure.args[0].str())
    return "ok"


@pytest.mark.chaos
def test_positions_are_told_soon_after_a_broker_is_back(broker: KafkaServer) -> None:
    """Clients that asked all the time while it was started again are answered as soon as new ones."""
    settings = KafkaSettings(bootstrap=broker.address)
    maker = admin(settings)
    maker.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(20)
    clients = [quiet_client(settings) for _ in range(CLIENTS)]
    await_true(lambda: [answer(client) for client in clients] == ["ok"] * CLIENTS, BACK_SECONDS, "first answers")
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGKILL)
    await_true(lambda: not broker.running(), BACK_SECONDS, "the end of the broker")
    TALLY.at_random["kafka"] += 1
    starting = threading.Thread(target=broker.start)
    starting.start()
    while starting.is_alive():
        for client in clients:
            answer(client)
    back = time.monotonic()
    await_true(lambda: answer(quiet_client(settings)) == "ok", BACK_SECONDS, "an answer for a new client")
    said: list[str] = []

    def all_answered() -> bool:
        said[:] = [answer(client) for client in clients]
        return said == ["ok"] * CLIENTS

    try:
        await_true(all_answered, SOON_SECONDS, "an answer for those who asked before")
    finally:
        print(f"{time.monotonic() - back:.1f} s after its start: {said}")
