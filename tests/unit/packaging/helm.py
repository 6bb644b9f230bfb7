"""Runs helm on the chart, and reads what it rendered."""

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.unit.packaging.tree import CHART

Manifest = dict[str, Any]
WORKLOADS = ("Deployment", "StatefulSet", "Job")
RUN_SECONDS = 60


@dataclass(frozen=True)
class Helm:
    """One helm program, always on this chart with the release name `shop`."""

    path: str

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs helm; does not raise for an exit code."""
        return subprocess.run([self.path, *arguments], capture_output=True, text=True, timeout=RUN_SECONDS)

    def render(self, values: Path, *sets: str) -> list[Manifest]:
        """The manifests for a file of values and `--set-json` pairs; fails when helm refuses."""
        done = self.run("template", "shop", str(CHART), "--values", str(values), *_pairs(sets))
        assert done.returncode == 0, done.stderr
        return [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]

    def refusal(self, values: Path, *sets: str) -> str:
        """What helm says when it refuses; fails when it does not."""
        done = self.run("template", "shop", str(CHART), "--values", str(values), *_pairs(sets))
        assert done.returncode != 0, "helm rendered what it should refuse"
        return done.stderr


def _pairs(sets: Sequence[str]) -> Iterator[str]:
    for pair in sets:
        name, _, value = pair.partition("=")
        try:
            json.loads(value)
        except json.JSONDecodeError:
            value = json.dumps(value)
        yield from ("--set-json", f"{name}={value}")


@dataclass(frozen=True)
class Workload:
    """A deployment, stateful set or job, with what its one container sees."""

    manifest: Manifest
    environment: dict[str, str]

    @property
    def kind(self) -> str:
        """Deployment, StatefulSet or Job."""
        return str(self.manifest["kind"])

    @property
    def component(self) -> str:
        """Which process it runs."""
        return str(self.manifest["metadata"]["labels"]["app.kubernetes.io/component"])

    @property
    def template(self) -> Manifest:
        """The pod template."""
        template: Manifest = self.manifest["spec"]["template"]
        return template

    @property
    def pod(self) -> Manifest:
        """The pod's specification."""
        pod: Manifest = self.template["spec"]
        return pod

    @property
    def container(self) -> Manifest:
        """The only container."""
        (container,) = self.pod["containers"]
        assert isinstance(container, dict)
        return container

    @property
    def secrets(self) -> set[str]:
        """Names of the secrets that its pod mounts."""
        return {volume["secret"]["secretName"] for volume in self.pod["volumes"] if "secret" in volume}


def workloads(manifests: Sequence[Manifest]) -> list[Workload]:
    """Everything that runs pods, each with the environment of config map and manifest together."""
    maps = {m["metadata"]["name"]: m["data"] for m in manifests if m["kind"] == "ConfigMap"}
    return [Workload(m, _environment(m, maps)) for m in manifests if m["kind"] in WORKLOADS]


def _environment(manifest: Manifest, maps: dict[str, dict[str, str]]) -> dict[str, str]:
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    found: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        found |= maps[source["configMapRef"]["name"]]
    return found | {entry["name"]: entry["value"] for entry in container.get("env", ())}


def variables_in_templates() -> set[str]:
    """Every setting that a template gives a value, `_FILE` taken off secrets."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(CHART.rglob("templates/**/*")) if path.is_file())
    return set(re.findall(r"TALLYHOOK_[A-Z0-9_]+", text))
