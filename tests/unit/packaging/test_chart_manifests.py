"""What the chart promises of the pods: probes, rights, secrets, hooks and selectors."""

from pathlib import Path

import pytest
from typer.main import get_command

from tests.unit.packaging.helm import Helm, Manifest, workloads
from tests.unit.packaging.tree import CHART, EXAMPLES, settings_from

SINGLE, REPLICATED = EXAMPLES
EVERY_EXAMPLE = pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.stem)


def test_lint_accepts_the_defaults(helm: Helm) -> None:
    """The chart as it ships is sound before anybody gave a value."""
    done = helm.run("lint", str(CHART))
    assert done.returncode == 0, done.stdout


@EVERY_EXAMPLE
def test_lint_accepts_the_examples(helm: Helm, values: Path) -> None:
    """With an example's values not even a warning is left."""
    done = helm.run("lint", "--strict", str(CHART), "--values", str(values))
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


@EVERY_EXAMPLE
def test_probes(helm: Helm, values: Path) -> None:
    """A dependency that is away makes a pod unready and never restarts it; a slow start is waited for."""
    found = [work for work in workloads(helm.render(values)) if work.kind != "Job"]
    assert found
    for work in found:
        asks = {
            name: work.container[name]["httpGet"]["path"]
            for name in ("startupProbe", "livenessProbe", "readinessProbe")
        }
        assert asks == {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
        startup = work.container["startupProbe"]
        assert startup["periodSeconds"] * startup["failureThreshold"] >= 120


@EVERY_EXAMPLE
def test_pods_have_the_least_rights(helm: Helm, values: Path) -> None:
    """No root, no writable image, no capabilities, no token of the cluster, bounded memory."""
    for work in workloads(helm.render(values)):
        assert work.pod["automountServiceAccountToken"] is False
        assert work.pod["securityContext"]["runAsNonRoot"] is True
        assert work.pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert work.container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "memory" in work.container["resources"]["limits"]


@EVERY_EXAMPLE
def test_the_cluster_adds_no_variables(helm: Helm, values: Path) -> None:
    """A service named ...-ingress would otherwise set TALLYHOOK_INGRESS_PORT=tcp://... in every pod."""
    assert {work.pod["enableServiceLinks"] for work in workloads(helm.render(values))} == {False}


def test_secrets_go_where_they_are_needed(helm: Helm) -> None:
    """The database's secrets stay out of ingress and streams, the public keys go to the door alone."""
    kafka, database = {"tallyhook-kafka", "tallyhook-kafka-tls"}, {"tallyhook-database", "tallyhook-database-tls"}
    with_database = kafka | database
    assert {work.component: work.secrets for work in workloads(helm.render(REPLICATED))} == {
        "ingress": kafka | {"gateway-public-keys"},
        "streams": kafka,
        "sink": with_database,
        "relay": with_database,
        "migrate": with_database,
        "topics": with_database,
    }


@EVERY_EXAMPLE
def test_paths_in_settings_are_mounted(helm: Helm, values: Path) -> None:
    """Each path of a secret that a process reads lies in one of its mounts and is an item of that secret."""
    for work in workloads(helm.render(values)):
        volumes = {volume["name"]: volume for volume in work.pod["volumes"]}
        there = {
            f"{mount['mountPath']}/{item['path']}"
            for mount in work.container["volumeMounts"]
            for item in volumes.get(mount["name"], {}).get("secret", {}).get("items", ())
        }
        needed = {value for value in work.environment.values() if value.startswith("/etc/tallyhook/")}
        if work.component != "ingress":
            needed.discard("/etc/tallyhook/public-keys/public-keys")
        assert needed <= there


def test_jobs_run_before_the_release_and_in_order(helm: Helm) -> None:
    """The schema comes before the topics, which are recorded in it; neither needs an object of the release."""
    jobs = {work.component: work for work in workloads(helm.render(SINGLE)) if work.kind == "Job"}
    hooks = {name: work.manifest["metadata"]["annotations"] for name, work in jobs.items()}
    assert {hook["helm.sh/hook"] for hook in hooks.values()} == {"pre-install,pre-upgrade"}
    assert int(hooks["migrate"]["helm.sh/hook-weight"]) < int(hooks["topics"]["helm.sh/hook-weight"])
    assert all("envFrom" not in work.container for work in jobs.values())


def test_jobs_can_be_left_out(helm: Helm) -> None:
    """Where a DBA migrates and a platform team makes topics, the chart runs neither."""
    found = workloads(helm.render(SINGLE, "jobs.migrate.enabled=false", "jobs.topics.enabled=false"))
    assert [work.component for work in found if work.kind == "Job"] == []


@EVERY_EXAMPLE
def test_containers_call_commands_that_exist(helm: Helm, values: Path) -> None:
    """Each container's arguments are a command of the program."""
    from tallyhook.cli.main import app

    for work in workloads(helm.render(values)):
        command = get_command(app)
        for word in work.container["args"]:
            command = getattr(command, "commands")[word]  # noqa: B009  a group's type is not public


@EVERY_EXAMPLE
def test_selectors_match_their_own_pods_alone(helm: Helm, values: Path) -> None:
    """No deployment, service or budget reaches the pods of another component or shard."""
    manifests = helm.render(values)
    pods = [(work.component, work.template["metadata"]["labels"]) for work in workloads(manifests)]
    for manifest in manifests:
        wanted = _selector(manifest)
        if wanted is None:
            continue
        matched = [component for component, labels in pods if wanted.items() <= labels.items()]
        assert len(matched) == 1, manifest["metadata"]["name"]
        assert matched[0] == manifest["metadata"]["labels"]["app.kubernetes.io/component"]


def _selector(manifest: Manifest) -> dict[str, str] | None:
    selector: Manifest = manifest.get("spec", {}).get("selector") or {}
    found: dict[str, str] | None = selector.get("matchLabels", selector) or None
    return found


def test_the_door_has_time_to_finish(helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The grace period covers the drain that the settings allow, and the announcement lies within the drain."""
    manifests = helm.render(SINGLE, "ingress.shutdownSeconds=42.5", "ingress.announceSeconds=7")
    (door,) = (work for work in workloads(manifests) if work.component == "ingress")
    settings = settings_from(door.environment, tmp_path, monkeypatch)
    assert settings.ingress.shutdown_seconds == 42.5
    assert settings.ingress.announce_seconds == 7
    assert door.pod["terminationGracePeriodSeconds"] > settings.ingress.shutdown_seconds


def test_a_single_door_can_still_be_moved(helm: Helm) -> None:
    """The budget limits absent pods, so that it never blocks the drain of a node for good."""
    (budget,) = (m for m in helm.render(SINGLE) if m["kind"] == "PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == 1
    assert "minAvailable" not in budget["spec"]


def test_changed_settings_replace_the_pods(helm: Helm) -> None:
    """Processes read their environment once: another setting must make another pod template."""
    before = {w.component: w.template for w in workloads(helm.render(SINGLE)) if w.kind != "Job"}
    after = {w.component: w.template for w in workloads(helm.render(SINGLE, "logs.level=debug")) if w.kind != "Job"}
    assert before.keys() == after.keys()
    assert all(before[name] != after[name] for name in before)


def test_a_rocksdb_store_gets_its_volume(helm: Helm) -> None:
    """With persistence the folder that the program writes to is a claim; without it a folder of the pod's life."""
    (kept,) = (work for work in workloads(helm.render(REPLICATED)) if work.component == "streams")
    (claim,) = kept.manifest["spec"]["volumeClaimTemplates"]
    mounts = {mount["name"]: mount["mountPath"] for mount in kept.container["volumeMounts"]}
    assert mounts[claim["metadata"]["name"]] == kept.environment["TALLYHOOK_STREAM_DATA_DIR"]
    (plain,) = (work for work in workloads(helm.render(SINGLE)) if work.component == "streams")
    assert {"name": "data", "emptyDir": {}} in plain.pod["volumes"]


@EVERY_EXAMPLE
def test_manifests_are_valid_kubernetes(helm: Helm, values: Path) -> None:
    """Each manifest holds to the schemas of the oldest supported and a current version of the API."""
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    for manifest in helm.render(values):
        for version in ("1.25", "1.34"):
            kubernetes_validate.validate(manifest, version, strict=True)
