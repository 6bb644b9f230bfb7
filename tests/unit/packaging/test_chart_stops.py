"""A pod is given the time that a clean stop takes, and the door the time to be forgotten by load balancers."""

from pathlib import Path

import pytest
import yaml

import sinks.relay.app
import sinks.worker
import streams.app
from tallyhook.settings import IngressSettings
from tests.unit.packaging.helm import Helm, Workload, workloads
from tests.unit.packaging.tree import EXAMPLES, ROOT, VALUE_SETS, settings_from

SINGLE = EXAMPLES[0]
STOP_SECONDS = {
    "streams": streams.app.STOP_SECONDS,
    "sink": sinks.worker.LAST_RESORT_SECONDS,
    "relay": sinks.relay.app.LAST_RESORT_SECONDS,
}
"""After so long each process ends itself hard; killed before, it leaves what it would have finished."""

HEALTH_STOP_SECONDS = 2.0
"""`HealthServer.stop` takes that long at most, after the last resort's time began to count."""


def _of(component: str, manifests: list[Workload]) -> list[Workload]:
    return [work for work in manifests if work.component == component]


@pytest.mark.parametrize("values", VALUE_SETS.values(), ids=VALUE_SETS.keys())
@pytest.mark.parametrize("component", STOP_SECONDS)
def test_grace_covers_the_programs_own_limit(helm: Helm, values: Path, component: str) -> None:
    """The process, which knows what it is doing, gives up before the cluster kills it."""
    for work in _of(component, workloads(helm.render(values))):
        assert work.pod["terminationGracePeriodSeconds"] >= STOP_SECONDS[component] + HEALTH_STOP_SECONDS


@pytest.mark.parametrize("component", STOP_SECONDS)
def test_less_is_refused_and_more_is_taken(helm: Helm, component: str) -> None:
    """With what the program may take."""
    stop = STOP_SECONDS[component]
    said = helm.refusal(SINGLE, f"{component}.terminationGraceSeconds={stop:.0f}")
    assert f"a clean stop may take {stop:.0f} s" in said
    for work in _of(component, workloads(helm.render(SINGLE, f"{component}.terminationGraceSeconds=300"))):
        assert work.pod["terminationGracePeriodSeconds"] == 300


def test_the_doors_grace_follows_from_its_settings(helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """preStop and drain together, fractions rounded up; the announcement lies within the drain."""
    given = ("ingress.preStopSeconds=11", "ingress.shutdownSeconds=42.5", "ingress.announceSeconds=7")
    (door,) = _of("ingress", workloads(helm.render(SINGLE, *given)))
    settings = settings_from(door.environment, tmp_path, monkeypatch).ingress
    assert (settings.shutdown_seconds, settings.announce_seconds) == (42.5, 7)
    assert door.container["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", "11"]
    assert door.pod["terminationGracePeriodSeconds"] == 11 + 43 + 5


def test_the_doors_drain_covers_the_longest_request(
    helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that came in the last moment may take its whole time to be read and to be confirmed."""
    (door,) = _of("ingress", workloads(helm.render(SINGLE)))
    settings = settings_from(door.environment, tmp_path, monkeypatch).ingress
    left = settings.shutdown_seconds - settings.announce_seconds
    assert left >= settings.body_timeout_seconds + settings.delivery_timeout_seconds
    assert settings.body_timeout_seconds == IngressSettings.model_fields["body_timeout_seconds"].default


def test_only_the_door_waits_before_it_stops(helm: Helm) -> None:
    """Nobody calls the others, so that waiting would only make an upgrade slow."""
    waiting = {work.component for work in workloads(helm.render(SINGLE)) if "lifecycle" in work.container}
    assert waiting == {"ingress"}
    assert "lifecycle" not in _of("ingress", workloads(helm.render(SINGLE, "ingress.preStopSeconds=0")))[0].container


def test_compose_gives_the_same_time() -> None:
    """docker-compose.yml kills nobody in the middle of a clean stop either."""
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    for service, component in (("stream", "streams"), ("sink", "sink"), ("relay", "relay")):
        grace = float(services[service]["stop_grace_period"].removesuffix("s"))
        assert grace >= STOP_SECONDS[component] + HEALTH_STOP_SECONDS
    door = float(services["ingress"]["stop_grace_period"].removesuffix("s"))
    assert door > IngressSettings.model_fields["shutdown_seconds"].default
