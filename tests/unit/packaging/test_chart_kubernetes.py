"""Every manifest holds to the API of the versions of Kubernetes that the chart names."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.packaging.helm import Helm, of_kind, workloads
from tests.unit.packaging.tree import CHART, ROOT, VALUE_SETS

OTHERS = {
    "HTTPRoute",
    "KafkaTopic",
    "PrometheusRule",
    "ScaledObject",
    "ServiceMonitor",
    "TriggerAuthentication",
}
"""Kinds of operators and add-ons, whose schemas are not at hand: tests of their own look at them."""

EVERYTHING = VALUE_SETS["everything"]


@pytest.fixture(scope="module")
def kubernetes() -> Any:
    """The checker; it has no types."""
    return pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")


@pytest.fixture(scope="module")
def known(kubernetes: Any) -> list[str]:
    """The versions at hand from the oldest that the chart takes."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    (oldest,) = re.findall(r">=1\.(\d+)", chart["kubeVersion"])
    folder = Path(kubernetes.__file__).parent / "kubernetes-json-schema"
    minors = {int(found[1]) for path in folder.iterdir() if (found := re.match(r"v1\.(\d+)\.", path.name))}
    return [f"1.{minor}" for minor in sorted(minors) if minor >= int(oldest)]


@pytest.fixture(scope="session")
def valid() -> set[str]:
    """What was found valid: most manifests are alike in several sets of values, and with both programs."""
    return set()


def test_the_oldest_version_is_one_that_can_be_checked(known: list[str]) -> None:
    """1.29 is the oldest, and newer ones are at hand."""
    assert known[0] == "1.29"
    assert len(known) > 5


@pytest.mark.parametrize("values", VALUE_SETS.values(), ids=VALUE_SETS.keys())
def test_manifests_are_valid(
    helm: Helm, values: Path, kubernetes: Any, known: list[str], valid: set[str], request: pytest.FixtureRequest
) -> None:
    """With no member that the API does not know; `--every-kubernetes` asks all versions, not only both ends."""
    versions = known if request.config.getoption("--every-kubernetes", default=False) else [known[0], known[-1]]
    for manifest in helm.render(values):
        if manifest["kind"] in OTHERS:
            continue
        content = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
        for version in versions:
            if f"{version} {content}" not in valid:
                kubernetes.validate(manifest, version, strict=True)
                valid.add(f"{version} {content}")


def test_a_member_that_the_api_does_not_know_is_found(helm: Helm, kubernetes: Any, known: list[str]) -> None:
    """The check can fail."""
    (door,) = (work.manifest for work in workloads(helm.render(EVERYTHING)) if work.component == "ingress")
    door["spec"]["template"]["spec"]["containers"][0]["readyness"] = {}
    with pytest.raises(kubernetes.ValidationError):
        kubernetes.validate(door, known[-1], strict=True)


def test_names_are_short_enough(helm: Helm) -> None:
    """With the longest name of a release, too: names of pods and services are labels of DNS."""
    for manifest in helm.render(EVERYTHING, f"fullnameOverride={'a' * 40}"):
        longest = 253 if manifest["kind"] in OTHERS else 63
        assert len(manifest["metadata"]["name"]) <= longest
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", manifest["metadata"]["name"])


def test_names_are_given_once(helm: Helm) -> None:
    """Two objects of one kind and name would be one."""
    for values in VALUE_SETS.values():
        names = [(m["kind"], m["metadata"]["name"]) for m in helm.render(values)]
        assert len(names) == len(set(names))


def test_monitors_find_each_component(helm: Helm) -> None:
    """Every process is scraped, ready or not, by a service whose port is named as the monitor names it."""
    manifests = helm.render(EVERYTHING)
    services, monitors = of_kind(manifests, "Service"), of_kind(manifests, "ServiceMonitor")
    assert set(services) == set(monitors) == {work.component for work in workloads(manifests) if work.runs}
    for name, monitor in monitors.items():
        (endpoint,) = monitor["spec"]["endpoints"]
        assert (endpoint["path"], endpoint["interval"]) == ("/metrics", "15s")
        assert endpoint["relabelings"] == [
            {"targetLabel": "job", "replacement": f"tallyhook-{name}"},
            {"targetLabel": "cluster", "replacement": "one"},
        ]
        assert endpoint["metricRelabelings"] == [{"action": "labeldrop", "regex": "pod_template_hash"}]
        found = [s for s in services.values() if _selected(monitor, s["metadata"]["labels"])]
        assert found == [services[name]]
        assert endpoint["port"] in {port["name"] for port in services[name]["spec"]["ports"]}
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
        assert name == "ingress" or services[name]["spec"]["publishNotReadyAddresses"] is True


def _selected(monitor: dict[str, Any], labels: dict[str, str]) -> bool:
    wanted: dict[str, str] = monitor["spec"]["selector"]["matchLabels"]
    return wanted.items() <= labels.items()


def test_alerts_come_whole(helm: Helm) -> None:
    """The rules of the file, with what Prometheus fills in left as it is."""
    rule = of_kind(helm.render(EVERYTHING), "PrometheusRule")["alerts"]
    wanted = yaml.safe_load((CHART / "files" / "tallyhook.rules.yaml").read_text(encoding="utf-8"))
    assert wanted["groups"]
    assert rule["spec"] == wanted
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    assert "{{ $" in json.dumps(rule["spec"]), "the templates of annotations are Prometheus's"


def test_runbooks_are_links(helm: Helm) -> None:
    """Each alert's page opens where the user keeps these sources; the pages are there."""
    given = "monitoring.prometheusRule.runbookBaseUrl=https://git.example.com/shop/"
    rule = of_kind(helm.render(EVERYTHING, given), "PrometheusRule")["alerts"]
    links = {alert["annotations"]["runbook_url"] for group in rule["spec"]["groups"] for alert in group["rules"]}
    assert links
    for link in links:
        assert (ROOT / link.removeprefix("https://git.example.com/shop/")).is_file(), link


def test_the_dashboard_comes_whole(helm: Helm) -> None:
    """Where Grafana's sidecar finds it."""
    dashboard = of_kind(helm.render(EVERYTHING), "ConfigMap")["dashboard"]
    wanted = json.loads((CHART / "files" / "tallyhook-dashboard.json").read_text(encoding="utf-8"))
    assert json.loads(dashboard["data"]["tallyhook.json"]) == wanted
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert dashboard["metadata"]["annotations"]["grafana_folder"] == "Payments"


@pytest.mark.parametrize("values", VALUE_SETS.values(), ids=VALUE_SETS.keys())
def test_kinds_of_operators_are_made_only_when_asked_for(helm: Helm, values: Path) -> None:
    """Without the operator the installation would fail at such a resource."""
    everything_off = [
        *("strimzi.enabled=false", "streams.keda.enabled=false", "sink.keda.enabled=false"),
        *("ingress.httpRoute.enabled=false", "monitoring.serviceMonitor.enabled=false"),
        "monitoring.prometheusRule.enabled=false",
    ]
    assert {m["kind"] for m in helm.render(values, *everything_off)} & OTHERS == set()
