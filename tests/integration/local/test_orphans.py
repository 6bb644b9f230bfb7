"""Servers that a crash left behind are ended by what they work on, and nobody else is."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallyhook.local.orphans import FoundProcess, end_orphans, processes
from tests.integration.local.conftest import line_of, packages_stack, running_program
from tests.integration.local.contents import put, records

DEAF = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True)\n"
    "while True: signal.pause()"
)


def is_mine(process: FoundProcess) -> bool:
    """The programs of this file carry this word as an argument."""
    return "-Dmine=1" in process.argv


def test_only_those_that_belong_are_ended() -> None:
    """One with the mark goes, also when it is deaf to the signal; one with a similar mark stays."""
    with running_program(DEAF, "-Dmine=1") as mine, running_program(DEAF, "-Dmine=12") as other:
        assert line_of(mine) == line_of(other) == "ready"
        # A killed child of this very test stays a zombie until it is waited for; zombies do not count as living.
        assert end_orphans(is_mine, signal.SIGTERM, 0.3) == [mine.pid]
        assert mine.wait(10) == -signal.SIGKILL
        assert other.poll() is None


def test_nobody_to_end_takes_no_time() -> None:
    """No orphan, no wait."""
    assert end_orphans(is_mine, signal.SIGTERM, 60) == []


def test_the_working_directory_is_seen(tmp_path: Path) -> None:
    """What tells the backends of a killed postmaster from others."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, cwd=tmp_path) as program:
        found = [process.cwd for process in processes() if process.pid == program.pid]
    assert found == [tmp_path.resolve()]


@pytest.fixture
def orphaned_state_dir(tmp_path: Path) -> Iterator[tuple[Path, "subprocess.Popen[bytes]"]]:
    """A state directory whose broker runs without any guardian, as after a crash on a system that tells no child."""
    path = tmp_path / "orphaned"
    stack = packages_stack(path)
    with stack:
        put(stack, "before")
        command = stack.kafka._process.argv  # type: ignore[attr-defined]
    with (tmp_path / "orphan.log").open("wb") as log:
        orphan = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    yield path, orphan
    orphan.kill()
    orphan.wait()
    stack.discard()


def test_an_orphaned_broker_is_ended_by_the_next_start(
    orphaned_state_dir: tuple[Path, "subprocess.Popen[bytes]"],
) -> None:
    """It would hold the data's lock and the port; the next start ends it and goes on with its data."""
    path, orphan = orphaned_state_dir
    with packages_stack(path) as stack:
        assert orphan.wait(1) is not None
        assert records(stack) == ["before"]
