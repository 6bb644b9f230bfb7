"""Prometheus's own programs, as Debian's package `prometheus` brings them."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.packaging.tree import ROOT

FILES = ROOT / "helm" / "tallyhook" / "files"
RULES = FILES / "tallyhook.rules.yaml"
DASHBOARD = FILES / "tallyhook-dashboard.json"
RUNBOOKS = ROOT / "docs" / "runbooks"
TESTS = sorted(Path(__file__).parent.glob("*.test.yaml"))
CHECK_SECONDS = 60

_SELECTOR = re.compile(r"\b((?:tallyhook|process)_\w+|up\b(?! *\())(\{[^}]*\})?")
_HISTOGRAM_SUFFIX = re.compile(r"_(bucket|sum|count)$")


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert rule."""

    name: str
    expr: str
    severity: str
    annotations: dict[str, str]
    for_: str

    @property
    def page(self) -> str:
        """The file name of its runbook: TallyhookSinkLag -> sink-lag.md."""
        words = re.findall(r"[A-Z][a-z0-9]*", self.name.removeprefix("Tallyhook"))
        return "-".join(word.lower() for word in words) + ".md"


@cache
def alerts() -> tuple[Alert, ...]:
    """Every rule of the file."""
    groups: list[dict[str, Any]] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return tuple(
        Alert(
            rule["alert"], rule["expr"], rule["labels"]["severity"], rule.get("annotations", {}), rule.get("for", "0m")
        )
        for group in groups
        for rule in group["rules"]
    )


def selectors(expr: str) -> Iterator[tuple[str, str]]:
    """The series that a query reads: the metric's name, and the selector as it is written."""
    for name, matchers in _SELECTOR.findall(expr):
        yield _HISTOGRAM_SUFFIX.sub("", name), name + matchers


def program(name: str) -> str:
    """The path of `promtool` or `prometheus`; skips the test where the machine has none."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian's package prometheus has it)")
    return found


def promtool(*arguments: str) -> None:
    """Runs promtool; fails with its words."""
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, timeout=CHECK_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
