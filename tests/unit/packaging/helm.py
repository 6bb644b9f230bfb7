"""Runs helm on the chart, and reads what it rendered."""

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.unit.packaging.tree import CHART

Manifest = dict[str, Any]
WORKLOADS = ("Deployment", "StatefulSet", "Job", "Pod")
RUN_SECONDS = 60


class Helm:
    """One helm program, always on this chart with the release name `shop`; what it rendered once is not rendered again.

    Args:
        path: of the program.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._rendered: dict[tuple[str, ...], list[Manifest]] = {}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs helm; does not raise for an exit code."""
        return subprocess.run([self.path, *arguments], capture_output=True, text=True, timeout=RUN_SECONDS)

    def render(self, values: Path, *sets: str, options: Sequence[str] = ()) -> list[Manifest]:
        """The manifests for a file of values and `--set-json` pairs; fails when helm refuses."""
        key = (str(values), *sets, *options)
        if key not in self._rendered:
            done = self._template(values, sets, options)
            assert done.returncode == 0, done.stderr
            self._rendered[key] = [manifest for manifest in yaml.load_all(done.stdout, Loader=_Loader) if manifest]
        return deepcopy(self._rendered[key])

    def refusal(self, values: Path, *sets: str) -> str:
        """What helm says when it refuses; fails when it does not."""
        done = self._template(values, sets, ())
        assert done.returncode != 0, "helm rendered what it should refuse"
        return done.stderr

    def _template(self, values: Path, sets: Sequence[str], options: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return self.run("template", "shop", str(CHART), "--values", str(values), *_pairs(sets), *options)


class _Loader(yaml.CSafeLoader):
    """Refuses a key that stands twice in one mapping, which YAML does not allow and most readers overlook."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping; raises AssertionError."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key stands twice: {keys} {node.start_mark}"
        return super().construct_mapping(node, deep)


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
    """A deployment, stateful set, job or pod, with what its one container sees."""

    manifest: Manifest
    environment: dict[str, str]

    @property
    def kind(self) -> str:
        """Deployment, StatefulSet, Job or Pod."""
        return str(self.manifest["kind"])

    @property
    def component(self) -> str:
        """Which process it runs."""
        return str(self.manifest["metadata"]["labels"]["app.kubernetes.io/component"])

    @property
    def template(self) -> Manifest:
        """The pod template; of a pod itself, the pod."""
        return _template(self.manifest)

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
    def runs(self) -> bool:
        """Whether it is there to stay, unlike the jobs and the test."""
        return self.kind in ("Deployment", "StatefulSet")

    @property
    def secrets(self) -> set[str]:
        """Names of the secrets that its pod mounts."""
        return {volume["secret"]["secretName"] for volume in self.pod["volumes"] if "secret" in volume}


def workloads(manifests: Sequence[Manifest]) -> list[Workload]:
    """Everything that runs pods, each with the environment of config map and manifest together."""
    maps = {m["metadata"]["name"]: m["data"] for m in manifests if m["kind"] == "ConfigMap"}
    return [Workload(m, _environment(m, maps)) for m in manifests if m["kind"] in WORKLOADS]


def _template(manifest: Manifest) -> Manifest:
    template: Manifest = manifest["spec"].get("template", manifest)
    return template


def _environment(manifest: Manifest, maps: dict[str, dict[str, str]]) -> dict[str, str]:
    (container,) = _template(manifest)["spec"]["containers"]
    found: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        found |= maps[source["configMapRef"]["name"]]
    return found | {entry["name"]: entry["value"] for entry in container.get("env", ()) if "value" in entry}


def of_kind(manifests: Sequence[Manifest], kind: str) -> dict[str, Manifest]:
    """The manifests of one kind by their name without the release's."""
    prefix = re.compile(r"^shop-(tallyhook|payments)-?")
    return {prefix.sub("", m["metadata"]["name"]): m for m in manifests if m["kind"] == kind}


def variables_in_templates() -> set[str]:
    """Every setting that a template gives a value, `_FILE` taken off secrets."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(CHART.rglob("templates/**/*")) if path.is_file())
    return set(re.findall(r"TALLYHOOK_[A-Z0-9_]+", text))
