"""Clocks that jump under load: what is refused says so, ages stay ages, and nothing is lost or doubled."""

import time
import urllib.request
from itertools import product
from pathlib import Path

import pytest

from schemas.topics import TopicNames
from tallyhook import kafka
from tallyhook.settings import KafkaSettings
from tests.chaos.load import make_load
from tests.chaos.posting import check_all, posted
from tests.chaos.shifted_clocks import NoCompiler, ShiftedClocks
from tests.chaos.tally import TALLY
from tests.running import RunningPipeline, await_true

OBJECTS, LATE_BY, RATE_A_SECOND = 250, 200, 60
HOUR, DAY = 3600.0, 86_400.0
WITHIN_TOLERANCE, BEYOND_TOLERANCE = 200.0, 600.0
JUMPS = [
    *product(("ingress",), (WITHIN_TOLERANCE, -WITHIN_TOLERANCE, 0.0)),
    *product(("stream", "sink", "relay"), (50 * DAY, -8 * DAY, 0.0)),
]
"""Fifty days are more than the stream remembers an object, eight more than a topic keeps a record."""

SECONDS_A_JUMP = 2.0
STALE_SECONDS = 2 * HOUR


def metric(pipeline: RunningPipeline, stage: str, beginning: str) -> float:
    """The sum of the samples that begin so."""
    with urllib.request.urlopen(pipeline.ready["metrics_urls"][stage], timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(beginning))


def negative_ages(pipeline: RunningPipeline) -> list[str]:
    """Gauges in seconds that are below zero."""
    found = []
    for stage, url in pipeline.ready["metrics_urls"].items():
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
        except OSError:
            continue  # it has ended and is being started again
        found += [f"{stage}: {line}" for line in lines if "seconds" in line and float(line.rsplit(" ", 1)[1]) < 0]
    return found


@pytest.fixture
def clocks(tmp_path: Path) -> ShiftedClocks:
    """Those of the stages."""
    try:
        return ShiftedClocks(tmp_path / "clocks", "ingress", "stream", "sink", "relay")
    except NoCompiler as failure:
        pytest.skip(f"clocks cannot be shifted: {failure}")


@pytest.mark.chaos
@pytest.mark.timeout(400)
def test_clocks_that_jump(clocks: ShiftedClocks, tmp_path: Path, seed: int) -> None:
    """Each stage's clock is set forward and back under load; the door refuses what its clock makes stale, by name."""
    load = make_load(seed, OBJECTS, late_by=LATE_BY)
    with RunningPipeline(tmp_path / "state", **clocks.environment) as pipeline:
        with posted(pipeline, load, RATE_A_SECOND) as gateway:
            for stage, seconds in JUMPS:
                passed, until = gateway.sent, time.monotonic() + SECONDS_A_JUMP
                clocks.set(stage, seconds)
                await_true(lambda p=passed, u=until: gateway.sent > p + 50 and time.monotonic() > u, 60, "traffic")  # type: ignore[misc]
                assert negative_ages(pipeline) == []
                TALLY.disturbances[f"{stage}'s clock jumped"] += 1
            refused = 'tallyhook_ingress_refused_total{reason="timestamp"'
            for seconds in (BEYOND_TOLERANCE, -BEYOND_TOLERANCE):
                before = metric(pipeline, "ingress", refused)
                clocks.set("ingress", seconds)
                await_true(lambda b=before: metric(pipeline, "ingress", refused) > b, 60, "a refusal by its reason")  # type: ignore[misc]
                TALLY.disturbances["ingress's clock jumped"] += 1
            clocks.set("ingress", 0)
            passed = gateway.sent
            await_true(lambda: gateway.sent > passed, 60, "traffic")
        assert set(gateway.answers) == {200, 401}
        check_all(pipeline)
        assert _stale_records(pipeline) == {}


def _stale_records(pipeline: RunningPipeline) -> dict[str, int]:
    """How many records of each topic Kafka would keep too short or too long, by the time they are stamped with."""
    ready, now = pipeline.ready, time.time()
    settings, names = KafkaSettings(bootstrap=ready["kafka_bootstrap"]), TopicNames(ready["topic_prefix"])
    found = {}
    for topic in (names.events, names.state_changes, names.effect("release_goods")):
        ages = [
            now - message.timestamp()[1] / 1000 for message in kafka.read_to_end(settings, topic, timeout_seconds=30)
        ]
        if wrong := sum(abs(age) > STALE_SECONDS for age in ages):
            found[topic] = wrong
    return found
