"""Failpoints: off unless a test allows them, exact where they strike, and absent from the production image."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

import tallyhook
from tallyhook.errors import SettingsError
from tallyhook.failpoint_arming import Folder, arm_in, armed, deaths_in, from_text
from tallyhook.failpoints import ALLOWED_VARIABLE, POINTS_VARIABLE, Failpoint, arm, handed_on

ROOT = Path(tallyhook.__file__).parents[1]
ALLOWED = {ALLOWED_VARIABLE: "tests-only"}
PASSES = """
import os, sys
# The editable installation would find every module of the working tree, also one that is missing in a copy of it.
sys.meta_path[:] = [finder for finder in sys.meta_path if "Editable" not in repr(finder)]
from tallyhook import failpoints, logs
logs.configure("sink", "INFO", "json")
failpoints.arm(os.environ)
for number in range(int(sys.argv[1])):
    print(number, flush=True)
    failpoints.reach("sink.decided", lambda: print("last", flush=True))
    failpoints.reach("sink.taken")
"""


def passes(number: int, variables: dict[str, str], folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """A process that passes two places so often."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    return subprocess.run(
        [sys.executable, "-c", PASSES, str(number)],
        env=environment | {"PYTHONPATH": str(folder)} | variables,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_each_is_reached_somewhere_and_by_its_own_stage() -> None:
    """Every name stands in the code of the stage that it is named for, in one place."""
    found: Counter[tuple[str, str]] = Counter()
    for stage, folder in (("ingress", "ingress"), ("stream", "streams"), ("sink", "sinks"), ("relay", "sinks/relay")):
        for file in (ROOT / folder).glob("*.py"):
            found.update((stage, name) for name in re.findall(r'(?:reach\(|sent=)"([^"]+)"', file.read_text("utf-8")))
    assert found == Counter((name.split(".")[0], name) for name in get_args(Failpoint))


def test_without_the_variable_nothing_happens() -> None:
    """The second variable alone arms nothing."""
    done = passes(3, ALLOWED)
    assert (done.returncode, done.stdout.split()) == (0, ["0", "1", "2"])


def test_the_process_dies_after_so_many_passes_and_does_its_last_act() -> None:
    """kill -9 at the third pass; the other place, not named, is passed."""
    done = passes(9, ALLOWED | {POINTS_VARIABLE: "sink.decided:2"})
    assert (done.returncode, done.stdout.split()) == (-signal.SIGKILL, ["0", "1", "2", "last"])


def test_the_signal_can_be_another() -> None:
    """TERM ends the process as a supervisor would."""
    assert passes(9, ALLOWED | {POINTS_VARIABLE: "sink.taken:0:TERM"}).returncode == -signal.SIGTERM


def test_of_several_each_counts_for_itself() -> None:
    """The one that is reached first strikes."""
    done = passes(9, ALLOWED | {POINTS_VARIABLE: "sink.decided:5, sink.taken:1"})
    assert (done.returncode, done.stdout.split()) == (-signal.SIGKILL, ["0", "1"])


@pytest.mark.parametrize("value", [None, "", "true", "tests-only "])
def test_without_leave_the_command_refuses(value: str | None) -> None:
    """Whatever the command, exit code 2 and a sentence that names both variables."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("TALLYHOOK_")}
    environment |= {POINTS_VARIABLE: "sink.decided:2"} | ({} if value is None else {ALLOWED_VARIABLE: value})
    done = subprocess.run(
        [sys.executable, "-m", "tallyhook", "sink"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert POINTS_VARIABLE in done.stderr
    assert ALLOWED_VARIABLE in done.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sink.nowhere:1", "'sink.nowhere' is no failpoint"),
        ("sink.decided", "must be after_n[:signal]"),
        ("sink.decided:-1", "must be after_n[:signal]"),
        ("sink.decided:1000001", "0..1000000 (passes)"),
        ("sink.decided:1:HUP", "KILL or STOP or TERM"),
        ("sink.decided:1,", "'' is no failpoint"),
        ("@/nowhere/at/all", "there is no such folder"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, told: str) -> None:
    """A typing error in a test must not look like a test that passed."""
    with pytest.raises(SettingsError, match="TALLYHOOK_FAILPOINTS=") as refused:
        arm(ALLOWED | {POINTS_VARIABLE: text})
    assert told in str(refused.value)
    assert refused.value.exit_code == 2


def test_a_folder_lets_one_process_die_once(tmp_path: Path) -> None:
    """The first process dies and leaves a mark; the next one passes."""
    arm_in(tmp_path, "sink.decided", "1")
    assert armed(tmp_path) == {"sink.decided"}
    variables = ALLOWED | {POINTS_VARIABLE: f"@{tmp_path}"}
    first, second = passes(4, variables), passes(4, variables)
    assert (first.returncode, first.stdout.split()) == (-signal.SIGKILL, ["0", "1", "last"])
    assert (second.returncode, second.stdout.split()) == (0, ["0", "1", "2", "3"])
    assert armed(tmp_path) == set()
    assert deaths_in(tmp_path) == {"sink.decided": 1}


def test_a_folder_is_looked_at_on_each_pass(tmp_path: Path) -> None:
    """A place can be armed while the process runs, and counts from then on."""
    points = from_text(f"@{tmp_path}")
    assert isinstance(points, Folder)
    points.reached("sink.taken", None)
    arm_in(tmp_path, "sink.taken", "2")
    points.reached("sink.taken", None)
    (tmp_path / "sink.taken").unlink()
    points.reached("sink.taken", None)
    arm_in(tmp_path, "sink.taken", "2")
    for _ in range(2):
        points.reached("sink.taken", None)
    assert armed(tmp_path) == {"sink.taken"}


def test_a_supervisor_hands_both_variables_on() -> None:
    """And nothing else of the environment."""
    assert handed_on({POINTS_VARIABLE: "a", "TALLYHOOK_SCHEMA": "b", **ALLOWED}) == {POINTS_VARIABLE: "a", **ALLOWED}
    assert handed_on({"PATH": "x"}) == {}


def test_the_production_image_cannot_be_armed(tmp_path: Path) -> None:
    """What the Dockerfile removes before it installs is what arms: without it the same environment is refused."""
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    (removal,) = (number for number, line in enumerate(lines) if line.startswith("RUN rm "))
    assert lines.index("COPY tallyhook tallyhook") < removal
    assert removal < next(number for number, line in enumerate(lines) if line.startswith("RUN pip install --no-deps ."))
    shutil.copytree(ROOT / "tallyhook", tmp_path / "tallyhook", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(lines[removal].removeprefix("RUN ").split(), cwd=tmp_path, check=True, timeout=10)
    done = passes(9, ALLOWED | {POINTS_VARIABLE: "sink.decided:2"}, tmp_path)
    assert done.returncode == 1
    assert "this build has no failpoints" in done.stderr
    assert done.stdout == ""
    assert passes(2, {}, tmp_path).returncode == 0
