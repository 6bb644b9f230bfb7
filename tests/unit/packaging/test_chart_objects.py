"""What stands around the pods: budgets, scalers, policies, routes, accounts, labels of one's own."""

import json
from pathlib import Path
from typing import Any

import pytest

from schemas.topics import TopicNames
from tallyhook.settings import Installation
from tests.unit.packaging.helm import Helm, Manifest, of_kind, workloads
from tests.unit.packaging.tree import EXAMPLES, VALUE_SETS, settings_from

SINGLE, REPLICATED = EXAMPLES
EVERYTHING, AUTOSCALED = VALUE_SETS["everything"], VALUE_SETS["KEDA"]
EVERY_SET = pytest.mark.parametrize("values", VALUE_SETS.values(), ids=VALUE_SETS.keys())
COMPONENTS = ("ingress", "streams", "sink", "relay")


def test_one_pod_can_always_be_moved(helm: Helm) -> None:
    """Each budget limits absent pods, and lets a pod go that is not ready: it never blocks the drain of a node."""
    budgets = of_kind(helm.render(REPLICATED), "PodDisruptionBudget")
    assert set(budgets) == {"ingress", "streams", "sink", "relay-0", "relay-1"}
    for budget in budgets.values():
        assert budget["spec"]["maxUnavailable"] == 1
        assert "minAvailable" not in budget["spec"]
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


@EVERY_SET
def test_accounts_have_no_token(helm: Helm, values: Path) -> None:
    """Each component has an account of its own that nothing can be done with; pods use those that exist."""
    manifests = helm.render(values)
    accounts = {m["metadata"]["name"]: m for m in manifests if m["kind"] == "ServiceAccount"}
    assert all(account["automountServiceAccountToken"] is False for account in accounts.values())
    used = {work.component: work.pod["serviceAccountName"] for work in workloads(manifests)}
    assert {name for component, name in used.items() if component != "test"} == set(accounts)
    assert len({used[name] for name in COMPONENTS if name in used}) == len([n for n in COMPONENTS if n in used])
    assert [m["kind"] for m in manifests if m["kind"].endswith(("Role", "RoleBinding"))] == []


def test_an_account_of_ones_own(helm: Helm) -> None:
    """A given name is taken, and the chart then makes none."""
    manifests = helm.render(SINGLE, "sink.serviceAccount.create=false", "sink.serviceAccount.name=mine")
    (sink,) = (work for work in workloads(manifests) if work.component == "sink")
    assert sink.pod["serviceAccountName"] == "mine"
    assert "sink" not in of_kind(manifests, "ServiceAccount")


def test_the_door_scales_by_cpu(helm: Helm) -> None:
    """Between the bounds, and the deployment names no number that would undo it at each upgrade."""
    manifests = helm.render(AUTOSCALED)
    scaler = of_kind(manifests, "HorizontalPodAutoscaler")["ingress"]["spec"]
    door = of_kind(manifests, "Deployment")["ingress"]
    assert scaler["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": door["metadata"]["name"]}
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (3, 12)
    assert "replicas" not in door["spec"]
    (container,) = door["spec"]["template"]["spec"]["containers"]
    assert "cpu" in container["resources"]["requests"], "a share of nothing cannot be measured"


@pytest.mark.parametrize(("name", "kind"), [("streams", "StatefulSet"), ("sink", "Deployment")])
def test_streams_and_sink_scale_by_what_waits(
    helm: Helm, name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KEDA reads the lag of the very group and topic that the process works with, and makes no idle pods."""
    manifests = helm.render(AUTOSCALED)
    scaled, target = of_kind(manifests, "ScaledObject")[name]["spec"], of_kind(manifests, kind)[name]
    assert scaled["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": kind, "name": target["metadata"]["name"]}
    assert "replicas" not in target["spec"]
    (work,) = (work for work in workloads(manifests) if work.component == name)
    installation = settings_from(work.environment, tmp_path, monkeypatch).installation
    assert 1 <= scaled["minReplicaCount"] <= scaled["maxReplicaCount"] <= installation.partitions
    ((kafka,),) = (scaled["triggers"],)
    assert kafka["metadata"] | {"lagThreshold": ""} == {
        "bootstrapServers": work.environment["TALLYHOOK_KAFKA_BOOTSTRAP"],
        "consumerGroup": installation.group_id(name),
        "topic": _read_by(name, installation),
        "lagThreshold": "",
        "offsetResetPolicy": "earliest",
        "allowIdleConsumers": "false",
    }
    assert "authenticationRef" not in kafka
    assert all(isinstance(value, str) for value in kafka["metadata"].values()), "KEDA takes texts alone"


def _read_by(name: str, installation: Installation) -> str:
    names = TopicNames(installation.topic_prefix)
    return {"streams": names.events, "sink": names.state_changes}[name]


@pytest.mark.parametrize("name", ["streams", "sink"])
def test_keda_reaches_kafka_as_the_pods_do(helm: Helm, name: str) -> None:
    """With their secrets, and the user's name from their environment."""
    values = VALUE_SETS["SASL and TLS"]
    manifests = helm.render(values, f"{name}.keda.enabled=true")
    (kafka,) = of_kind(manifests, "ScaledObject")[name]["spec"]["triggers"]
    assert {kafka["metadata"]["sasl"], kafka["metadata"]["tls"]} == {"scram_sha256", "enable"}
    login = of_kind(manifests, "TriggerAuthentication")[name]
    assert kafka["authenticationRef"] == {"name": login["metadata"]["name"]}
    (work,) = (work for work in workloads(manifests) if work.component == name)
    ((user,),) = (login["spec"]["env"],)
    assert user == {"parameter": "username", "name": "TALLYHOOK_KAFKA_SASL_USERNAME", "containerName": name}
    assert user["containerName"] == work.container["name"]
    assert work.environment["TALLYHOOK_KAFKA_SASL_USERNAME"] == "tallyhook"
    assert {(s["parameter"], s["name"], s["key"]) for s in login["spec"]["secretTargetRef"]} == {
        ("password", "kafka-user", "secret"),
        ("ca", "kafka-certificates", "ca.crt"),
        ("cert", "kafka-certificates", "user.crt"),
        ("key", "kafka-certificates", "user.key"),
        ("keyPassword", "kafka-certificates", "user.password"),
    }


def _ports(rules: list[Manifest]) -> set[int]:
    return {port["port"] for rule in rules for port in rule.get("ports", ())}


def test_policies_leave_each_pod_what_it_needs(helm: Helm) -> None:
    """Every pod is under one; the database is reached by who speaks to it, jobs and test are called by nobody."""
    manifests = helm.render(EVERYTHING)
    policies = of_kind(manifests, "NetworkPolicy")
    assert set(policies) == {work.component for work in workloads(manifests)}
    for name, policy in policies.items():
        spec = policy["spec"]
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        called = {"ingress": {8080}, "streams": {9101}, "sink": {9102}, "relay": {9103}}.get(name, set())
        assert _ports(spec.get("ingress", [])) == called
        assert all(rule["from"] for rule in spec.get("ingress", [])), "everybody could call it"
        database, kafka = {5432, 6432}, {9093}
        reached = {53, 4317} | (kafka if name not in ("migrate", "test") else set())
        reached |= database if name not in ("ingress", "streams") else set()
        reached |= {8080, 80, 443} if name == "test" else set()
        assert _ports(spec["egress"]) == reached, name


def test_the_test_of_a_release_reaches_the_door(helm: Helm) -> None:
    """Whoever else is let in: the test's pod is among them, and nobody lets it in anywhere else."""
    manifests = helm.render(EVERYTHING)
    (probe,) = (work for work in workloads(manifests) if work.component == "test")
    for name, policy in of_kind(manifests, "NetworkPolicy").items():
        peers = [peer for rule in policy["spec"].get("ingress", ()) for peer in rule["from"] if "podSelector" in peer]
        assert len(peers) == (name == "ingress")
        for peer in peers:
            assert peer["podSelector"]["matchLabels"].items() <= probe.template["metadata"]["labels"].items()


def test_policies_for_jobs_come_before_them(helm: Helm) -> None:
    """In a namespace that denies everything the jobs could reach nothing, and the installation would never begin."""
    manifests = helm.render(REPLICATED, "jobs.serviceAccount.create=true")
    for kind, names in (("NetworkPolicy", ("migrate", "topics")), ("ServiceAccount", ("jobs",))):
        for name in names:
            annotations = of_kind(manifests, kind)[name]["metadata"]["annotations"]
            assert annotations["helm.sh/hook"] == "pre-install,pre-upgrade"
            assert int(annotations["helm.sh/hook-weight"]) < 0
            assert "hook-succeeded" not in annotations["helm.sh/hook-delete-policy"], "a later job needs it, too"


def test_only_webhooks_lead_in_from_outside(helm: Helm) -> None:
    """Metrics and health pages are reached from inside alone, by an Ingress as by an HTTPRoute."""
    manifests = helm.render(EVERYTHING)
    door = of_kind(manifests, "Service")["ingress"]
    ((rule,),) = (of_kind(manifests, "Ingress")["ingress"]["spec"]["rules"],)
    (path,) = rule["http"]["paths"]
    assert (rule["host"], path["path"], path["pathType"]) == ("pay.example.com", "/webhooks", "Prefix")
    assert path["backend"]["service"] == {"name": door["metadata"]["name"], "port": {"name": "http"}}
    ((route,),) = (of_kind(manifests, "HTTPRoute")["ingress"]["spec"]["rules"],)
    assert route["matches"] == [{"path": {"type": "PathPrefix", "value": "/webhooks"}}]
    assert route["backendRefs"] == [{"name": door["metadata"]["name"], "port": door["spec"]["ports"][0]["port"]}]
    assert [m for m in manifests if m["kind"] == "Service" and m["spec"].get("type") == "LoadBalancer"] == [door]


def test_a_release_without_a_door(helm: Helm) -> None:
    """Test events come by another one's door: nothing of it is made, and no public keys are needed."""
    manifests = helm.render(VALUE_SETS["test mode"])
    assert "ingress" not in {m["metadata"]["labels"]["app.kubernetes.io/component"] for m in manifests}
    assert {work.component for work in workloads(manifests) if work.runs} == {"streams", "sink", "relay"}


def test_labels_and_annotations_reach_everything(helm: Helm) -> None:
    """The common ones every object and pod, those of all pods and of one component its pods."""
    manifests = helm.render(EVERYTHING)
    for manifest in manifests:
        assert manifest["metadata"]["labels"]["team"] == "payments", manifest["metadata"]["name"]
        assert manifest["metadata"]["annotations"]["example.com/owner"] == "payments", manifest["metadata"]["name"]
    for work in workloads(manifests):
        labels = work.template["metadata"]["labels"]
        assert (labels["team"], labels["own"]) == ("payments", "yes")
        if work.kind != "Pod":
            assert labels["tier"] == "backend"
            notes = work.template["metadata"]["annotations"]
            assert (notes["example.com/scrape"], notes["example.com/own"]) == ("no", "yes")
        of = {"migrate": "jobs", "topics": "jobs", "ingress": "door"}.get(work.component, work.component)
        if work.component != "test":
            assert work.manifest["metadata"]["annotations"]["example.com/of"] == of


def test_what_is_given_for_pods_reaches_every_pod(helm: Helm) -> None:
    """Variables, volumes and where they may run, of all pods and of one component."""
    for work in workloads(helm.render(EVERYTHING)):
        assert {"TZ", "OWN"} <= {entry["name"] for entry in work.container["env"]}
        assert {"extra", "own"} <= {volume["name"] for volume in work.pod["volumes"]}
        assert {"/extra", "/own"} <= {mount["mountPath"] for mount in work.container["volumeMounts"]}
        assert work.pod["priorityClassName"] == "high"
        assert work.pod["nodeSelector"] == {"kubernetes.io/arch": "amd64"}
        assert [toleration["key"] for toleration in work.pod["tolerations"]] == ["payments"]
        assert "nodeAffinity" in work.pod["affinity"]
        assert work.pod["imagePullSecrets"] == [{"name": "registry"}]
        assert "@sha256:" in work.container["image"]
        if work.runs:
            assert [c["topologyKey"] for c in work.pod["topologySpreadConstraints"]] == ["zone"]


def test_a_component_wins_over_all_pods(helm: Helm) -> None:
    """What a component says for itself is taken instead."""
    own: dict[str, Any] = {"nodeSelector": {"disk": "ssd"}, "priorityClassName": "highest", "labels": {"tier": "sink"}}
    (sink,) = (
        work for work in workloads(helm.render(EVERYTHING, f"sink.pod={json.dumps(own)}")) if work.component == "sink"
    )
    assert sink.pod["nodeSelector"] == {"disk": "ssd"}
    assert sink.pod["priorityClassName"] == "highest"
    assert sink.template["metadata"]["labels"]["tier"] == "sink"
