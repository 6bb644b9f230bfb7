"""What the chart promises of the pods: probes, rights, secrets, selectors and variables."""

from pathlib import Path

import pytest
from typer.main import get_command

from tests.unit.packaging.helm import Helm, Manifest, workloads
from tests.unit.packaging.tree import CHART, EXAMPLES, VALUE_SETS, settings_from

SINGLE, REPLICATED = EXAMPLES
EVERY_SET = pytest.mark.parametrize("values", VALUE_SETS.values(), ids=VALUE_SETS.keys())


def test_lint_accepts_the_defaults(helm: Helm) -> None:
    """The chart as it ships is sound before anybody gave a value."""
    done = helm.run("lint", str(CHART))
    assert done.returncode == 0, done.stdout


@EVERY_SET
def test_lint_accepts_every_set_of_values(helm: Helm, values: Path) -> None:
    """With values not even a warning is left."""
    done = helm.run("lint", "--strict", str(CHART), "--values", str(values))
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


@EVERY_SET
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


@EVERY_SET
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
    (probe,) = (work for work in workloads(helm.render(VALUE_SETS["everything"])) if work.component == "test")
    assert probe.secrets == {"probe-key", "database", "database-certificates"}


@EVERY_SET
def test_no_secret_stands_in_a_manifest(helm: Helm, values: Path) -> None:
    """Every credential is a file of an existing secret: the chart makes none, and no variable holds one."""
    manifests = helm.render(values)
    assert [m for m in manifests if m["kind"] == "Secret"] == []
    for work in workloads(manifests):
        named = {name for name in work.environment if name.endswith(("PASSWORD", "KEY", "_KEYS", "TOKEN"))}
        assert named - {"PGSSLKEY"} == set()


@EVERY_SET
def test_paths_in_variables_are_mounted(helm: Helm, values: Path) -> None:
    """Each path of a secret that a process reads lies in one of its mounts and is an item of that secret."""
    for work in workloads(helm.render(values)):
        volumes = {volume["name"]: volume for volume in work.pod["volumes"]}
        there, folders = set(), set()
        for mount in work.container["volumeMounts"]:
            source = volumes.get(mount["name"], {}).get("secret") or volumes.get(mount["name"], {}).get("configMap", {})
            there |= {f"{mount['mountPath']}/{item['path']}" for item in source.get("items", ())}
            folders |= {mount["mountPath"]} if source and "items" not in source else set()
        given = [*work.environment.values(), *work.container["args"]]
        needed = {value for value in given if value.startswith("/etc/tallyhook/")}
        assert {path for path in needed if str(Path(path).parent) not in folders} <= there


@EVERY_SET
def test_containers_call_commands_that_exist(helm: Helm, values: Path) -> None:
    """Each container's arguments are a command of the program, with options that it has."""
    from tallyhook.cli.main import app

    for work in workloads(helm.render(values)):
        command, words = get_command(app), list(work.container["args"])
        while words and words[0] in getattr(command, "commands", ()):
            command = getattr(command, "commands")[words.pop(0)]  # noqa: B009  a group's type is not public
        assert command.name != "tallyhook"
        command.make_context(command.name, words)


@EVERY_SET
def test_selectors_match_their_own_pods_alone(helm: Helm, values: Path) -> None:
    """No deployment, service, budget or policy reaches the pods of another component."""
    manifests = helm.render(values)
    pods = [(work.component, work.template["metadata"]["labels"]) for work in workloads(manifests)]
    for manifest in manifests:
        wanted = _selector(manifest)
        if wanted is None or manifest["kind"] == "ServiceMonitor":
            continue
        matched = {component for component, labels in pods if wanted.items() <= labels.items()}
        assert matched == {manifest["metadata"]["labels"]["app.kubernetes.io/component"]}, manifest["metadata"]["name"]
        if manifest["kind"] in ("Deployment", "StatefulSet", "PodDisruptionBudget"):
            assert sum(wanted.items() <= labels.items() for _, labels in pods) == 1, manifest["metadata"]["name"]


def _selector(manifest: Manifest) -> dict[str, str] | None:
    spec = manifest.get("spec", {})
    selector: Manifest = spec.get("podSelector") or spec.get("selector") or {}
    found: dict[str, str] | None = selector.get("matchLabels", selector) or None
    return found


def test_changed_settings_replace_the_pods(helm: Helm) -> None:
    """Processes read their environment once: another setting must make another pod template."""
    before = {w.component: w.template for w in workloads(helm.render(SINGLE)) if w.runs}
    after = {w.component: w.template for w in workloads(helm.render(SINGLE, "logs.level=debug")) if w.runs}
    assert before.keys() == after.keys()
    assert all(before[name] != after[name] for name in before)


def test_a_rocksdb_store_gets_its_volume(helm: Helm) -> None:
    """With persistence the folder that the program writes to is a claim; without it a folder of the pod's life."""
    (kept,) = (work for work in workloads(helm.render(REPLICATED)) if work.component == "streams")
    (claim,) = kept.manifest["spec"]["volumeClaimTemplates"]
    mounts = {mount["name"]: mount["mountPath"] for mount in kept.container["volumeMounts"]}
    assert mounts[claim["metadata"]["name"]] == kept.environment["TALLYHOOK_STREAM_DATA_DIR"]
    assert kept.environment["TALLYHOOK_STREAM_STORE"] == "rocksdb"
    assert kept.manifest["spec"]["podManagementPolicy"] == "Parallel"
    assert kept.manifest["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Retain"
    (plain,) = (work for work in workloads(helm.render(SINGLE)) if work.component == "streams")
    assert {"name": "data", "emptyDir": {}} in plain.pod["volumes"]


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.stem)
def test_pods_of_one_component_are_spread(helm: Helm, values: Path) -> None:
    """Over zones and nodes unless the user says otherwise, and only as a wish: a single node takes them all."""
    for work in (w for w in workloads(helm.render(values)) if w.runs):
        constraints = work.pod["topologySpreadConstraints"]
        assert {c["topologyKey"] for c in constraints} == {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}
        for constraint in constraints:
            assert constraint["whenUnsatisfiable"] == "ScheduleAnyway"
            assert constraint["labelSelector"]["matchLabels"] == work.manifest["spec"]["selector"]["matchLabels"]


def test_a_client_certificate_for_the_database(helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """libpq is told where it is and that the server's is verified; only those who speak to the database are."""
    for work in workloads(helm.render(VALUE_SETS["SASL and TLS"])):
        told = {name: value for name, value in work.environment.items() if name.startswith("PG")}
        if settings_from(work.environment, tmp_path, monkeypatch).database.url is None:
            assert told == {}
            continue
        folder = "/etc/tallyhook/database-tls"
        files = {"PGSSLROOTCERT": "ca.crt", "PGSSLCERT": "tls.crt", "PGSSLKEY": "tls.key"}
        assert told == {"PGSSLMODE": "verify-full"} | {name: f"{folder}/{file}" for name, file in files.items()}
        (volume,) = (v for v in work.pod["volumes"] if v["name"] == "database-tls")
        assert volume["secret"]["defaultMode"] == 0o440
