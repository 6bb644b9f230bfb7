"""A case from the life of webhook receivers: a database that is away must make no process start anew."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallyhook.errors import DatabaseUnavailable
from tallyhook.local.stack import LocalStack, local_stack
from tallyhook.postgres import connect
from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings
from tests.integration.sinks.balances import applied, lives, sound
from tests.integration.sinks.conftest import Road
from tests.integration.sinks.running import Running, Worker, running, until
from tests.unit.packaging.helm import Helm, workloads
from tests.unit.packaging.tree import VALUE_SETS

AWAY_SECONDS = 300.0
PROBE_SECONDS = 1.0
NOTICED_SECONDS = 15.0


@pytest.mark.case(24)
@pytest.mark.parametrize("values", VALUE_SETS.values(), ids=VALUE_SETS.keys())
def test_case_24_what_the_probes_of_the_chart_ask(helm: Helm, values: Path) -> None:
    """Every workload waits for its start; liveness asks /livez and never /readyz, which speaks of dependencies."""
    found = [work for work in workloads(helm.render(values)) if work.runs]
    assert {"streams", "sink", "relay"} <= {work.component for work in found}
    for work in found:
        probes = {name: work.container[name] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
        assert {name: probe["httpGet"]["path"] for name, probe in probes.items()} == {
            "startupProbe": "/livez",
            "livenessProbe": "/livez",
            "readinessProbe": "/readyz",
        }
        assert {probe["httpGet"]["port"] for probe in probes.values()} == {"http"}
        startup, liveness = probes["startupProbe"], probes["livenessProbe"]
        assert startup["periodSeconds"] * startup["failureThreshold"] >= 120
        assert liveness["periodSeconds"] * liveness["failureThreshold"] >= 20, "a long pause is no death"


@pytest.fixture
def own_stack(tmp_path: Path) -> Iterator[LocalStack]:
    """Kafka and PostgreSQL that nobody else uses, for one of them is taken away."""
    stack = local_stack(tmp_path / "stack", KafkaSettings(bootstrap=None), DatabaseSettings(url=None), lambda _: None)
    with stack:
        yield stack
    stack.discard()


@pytest.fixture
def stage(own_stack: LocalStack, tmp_path: Path) -> Iterator[Running]:
    """Topics and schema on the own servers, and room for workers."""
    name = f"t{time.time_ns()}"
    own = Installation(topic_prefix=name, schema_=name)
    database = DatabaseSettings.model_validate({"url": own_stack.database_url})
    with running(own, KafkaSettings(bootstrap=own_stack.kafka_bootstrap), database, tmp_path) as made:
        yield made


def eyes(stage: Running) -> Road:
    """A look at the database; raises DatabaseUnavailable."""
    made = Road(stage.settings.database, stage.settings.installation, connect(stage.settings.database, "test"))
    made.execute(f"SET search_path TO {stage.settings.installation.schema_name}".encode())
    return made


def answers_again(stage: Running) -> bool:
    """Whether the database can be looked at."""
    try:
        eyes(stage).connection.close()
    except DatabaseUnavailable:
        return False
    return True


def watched(worker: Worker, seconds: float) -> Iterator[tuple[int, int, str]]:
    """Liveness, readiness and its reasons, asked as a cluster would, as long as the outage lasts."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        alive, ready = worker.page("livez")[0], worker.page("readyz")
        yield alive, *ready
        time.sleep(PROBE_SECONDS)  # the length of the outage is the case


@pytest.mark.case(24)
@pytest.mark.cases
@pytest.mark.timeout(900)
def test_case_24_five_minutes_without_a_database(own_stack: LocalStack, stage: Running) -> None:
    """The sink lives, says why it is not ready, is never started anew, and goes on by itself where it was."""
    road = eyes(stage)
    worker = stage.worker()
    stage.publish(*lives(road, 50))
    until(lambda: applied(road) == 100, stage.workers)
    waiting = lives(road, 100, 50)
    road.connection.close()

    own_stack.postgres.stop()
    stage.publish(*waiting)
    # The first reason is that a session broke; that there is no new one comes a moment later.
    until(lambda: "PostgreSQL does not answer" in worker.reasons(), stage.workers, NOTICED_SECONDS)
    seen = set(watched(worker, AWAY_SECONDS))
    assert {(alive, ready) for alive, ready, _ in seen} == {(200, 503)}
    assert all("PostgreSQL does not answer" in reasons for *_, reasons in seen)
    assert worker.process.poll() is None

    own_stack.postgres.start()
    until(lambda: answers_again(stage), stage.workers)
    until(lambda: not worker.reasons(), stage.workers)
    road = eyes(stage)
    until(lambda: applied(road) == 300, stage.workers)
    sound(road, 150)
    assert worker.process.poll() is None
    assert len(stage.workers) == 1
    road.connection.close()
