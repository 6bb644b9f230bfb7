"""The broker itself dies or freezes under the worker: nothing is lost, and it goes on by itself."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallyhook.local.jars import default_cache_dir
from tallyhook.local.kafka_server import KafkaServer
from tallyhook.local.ports import Ports
from tallyhook.settings import Installation, KafkaSettings
from tests.integration.streams.traffic import Road, assert_first_passes_in_order, assert_nothing_lost, disordered
from tests.integration.streams.worker import Worker, until

EVENTS = 6000

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaServer]:
    """A broker of this test's own, since it is going to be killed."""
    server = KafkaServer(tmp_path / "broker", Ports(tmp_path / "broker"), default_cache_dir(), lambda _: None)
    server.prepare()
    server.start()
    yield server
    server.stop()
    server.discard()


@pytest.fixture
def own_road(broker: KafkaServer) -> Road:
    """Topics on that broker."""
    made = Road(KafkaSettings(bootstrap=broker.address), Installation(topic_prefix="own", schema_="own"))
    made.create_topics()
    return made


@pytest.fixture
def own_worker(broker: KafkaServer, tmp_path: Path) -> Iterator[Worker]:
    """A worker on that broker."""
    made = Worker(
        broker.address,
        Installation(topic_prefix="own", schema_="own"),
        tmp_path / "worker",
        environment={"TALLYHOOK_STREAM_BATCH_EVENTS": "100"},
    )
    yield made
    made.discard()


def long(request: pytest.FixtureRequest) -> bool:
    """Whether the long forms are asked for."""
    return bool(request.config.getoption("--chaos-long", default=False))


def under_load(road: Road, worker: Worker, disturb: list[tuple[float, str, KafkaServer]]) -> None:
    """Writes and judges while the broker is disturbed, then everything must come out."""
    parts = range(EVENTS // 500)
    writer = threading.Thread(target=lambda: [road.write(disordered(500, 200, part, 500 * part)) for part in parts])
    worker.start()
    worker.wait_ready()
    writer.start()
    try:
        for seconds, how, broker in disturb:
            before = road.output_count()
            until(lambda b=before: worker.keep_running() and road.output_count() > b, 120, "outputs before")  # type: ignore[misc]
            disturb_once(broker, how, seconds)
            road.write(disordered(50, 200, seed=99, first=90_000))
    finally:
        writer.join()
    until(
        lambda: worker.keep_running() and road.unjudged() == 0,
        180,
        lambda: f"all judged; log ends {worker.log[-3000:]}",
    )
    assert worker.end(signal.SIGTERM, 90) == 0
    assert_nothing_lost(road)
    assert_first_passes_in_order(road)


def disturb_once(broker: KafkaServer, how: str, seconds: float) -> None:
    """Kills or freezes the broker for so long."""
    pid = broker.pid
    assert pid is not None
    if how == "kill":
        os.kill(pid, signal.SIGKILL)
        until(lambda: not broker.running(), 30, "broker is dead")
        time.sleep(seconds)  # the outage itself
        broker.start()
    else:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)  # the freeze itself
        os.kill(pid, signal.SIGCONT)


def test_a_broker_killed_under_load_costs_nothing(
    broker: KafkaServer, own_road: Road, own_worker: Worker, request: pytest.FixtureRequest
) -> None:
    """kill -9 and a restart; the worker rides it out or is started again."""
    outages = [3.0, 20.0] if long(request) else [2.0]
    under_load(own_road, own_worker, [(seconds, "kill", broker) for seconds in outages])


def test_a_frozen_broker_costs_nothing(
    broker: KafkaServer, own_road: Road, own_worker: Worker, request: pytest.FixtureRequest
) -> None:
    """SIGSTOP for longer than the session: all partitions are lost and come back."""
    freezes = [15.0, 40.0] if long(request) else [15.0]
    under_load(own_road, own_worker, [(seconds, "freeze", broker) for seconds in freezes])
