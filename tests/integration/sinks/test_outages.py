"""Servers of the test's own are killed and frozen under a working sink."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from psycopg import sql
from pydantic import SecretStr

from tallyhook.errors import DatabaseUnavailable
from tallyhook.local.service import Service
from tallyhook.local.stack import LocalStack, local_stack
from tallyhook.postgres import connect
from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings
from tests.integration.sinks.balances import applied, lives, sound
from tests.integration.sinks.conftest import Road
from tests.integration.sinks.running import Running, running, until

pytestmark = pytest.mark.chaos


@pytest.fixture(scope="module")
def own_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Kafka and PostgreSQL that nobody else uses."""
    stack = local_stack(
        tmp_path_factory.mktemp("own-stack"), KafkaSettings(bootstrap=None), DatabaseSettings(url=None), lambda _: None
    )
    if stack.kafka.pid is None and len(stack.own) < 2:
        pytest.skip("the servers are given by the environment, so they cannot be killed")
    with stack:
        yield stack
    stack.discard()


@pytest.fixture
def road(own_stack: LocalStack) -> Iterator[Road]:
    """Looks at the own database; connects anew when the server was killed."""
    installation = Installation(topic_prefix=f"t{time.time_ns()}", schema_=f"t{time.time_ns()}")
    database = DatabaseSettings(url=SecretStr(own_stack.database_url))
    made = Road(database, installation, connect(database, "test"))
    look(made)
    yield made
    made.connection.close()


@pytest.fixture
def stage(own_stack: LocalStack, road: Road, tmp_path: Path) -> Iterator[Running]:
    """Topics and workers on the own servers."""
    with running(
        road.installation, KafkaSettings(bootstrap=own_stack.kafka_bootstrap), road.database, tmp_path
    ) as made:
        yield made


def look(road: Road) -> None:
    """Connects the test's own eyes."""
    road.connection.close()
    road.connection = connect(road.database, "test")
    road.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(road.installation.schema_name)).as_bytes(None))


def kill(server: Service) -> None:
    """kill -9, and waits until it is noticed."""
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    until(lambda: not server.running(), [])


def answering(road: Road) -> Callable[[], bool]:
    """Whether the test can look at the database again."""

    def ask() -> bool:
        try:
            look(road)
        except DatabaseUnavailable:
            return False
        return True

    return ask


def test_postgres_killed_under_load(own_stack: LocalStack, road: Road, stage: Running) -> None:
    """kill -9 of the whole server in the middle of batches: the worker lives, and everything is applied once."""
    worker = stage.worker()
    stage.publish(*lives(road, 50))
    until(lambda: applied(road) >= 50, stage.workers)
    events = lives(road, 300, 50)
    for first in (0, 300):
        stage.publish(*events[first : first + 300])
        kill(own_stack.postgres)
        until(lambda: worker.reasons() != "", stage.workers)
        assert worker.page("livez")[0] == 200
        own_stack.postgres.start()
        until(answering(road), stage.workers)
        until(lambda: not worker.reasons(), stage.workers)
    until(lambda: applied(road) == 700, stage.workers)
    sound(road, 350)


def test_the_broker_killed_and_frozen_under_load(own_stack: LocalStack, road: Road, stage: Running) -> None:
    """After a restart and after ten seconds of silence the worker reads on by itself; nothing is lost."""
    worker = stage.worker()
    stage.publish(*lives(road, 50))
    until(lambda: applied(road) == 100, stage.workers)
    stage.publish(*lives(road, 100, 50))
    kill(own_stack.kafka)
    own_stack.kafka.start()
    until(lambda: applied(road) == 300, stage.workers)
    stage.publish(*lives(road, 100, 150))
    until(lambda: applied(road) == 500, stage.workers)
    broker = own_stack.kafka.pid
    assert broker is not None
    os.kill(broker, signal.SIGSTOP)
    time.sleep(10)  # the length of the freeze is the case
    os.kill(broker, signal.SIGCONT)
    stage.publish(*lives(road, 100, 250))
    until(lambda: applied(road) == 700, stage.workers)
    until(lambda: not worker.reasons(), stage.workers)
    sound(road, 350)
    assert worker.process.poll() is None
