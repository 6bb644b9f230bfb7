"""The lock of a state directory."""

from pathlib import Path

import pytest

from tallyhook.errors import LocalStackError, StateDirBusy
from tallyhook.local.lock import StateDirLock
from tests.integration.local.conftest import line_of, running_program

HOLDER = """
import sys, time
from pathlib import Path
from tallyhook.local.lock import StateDirLock
StateDirLock(Path(sys.argv[1])).acquire()
print("held", flush=True)
time.sleep(600)
"""


def test_the_second_holder_is_told_the_first_ones_pid(tmp_path: Path) -> None:
    """Two processes on one state directory: the second says so and names the first."""
    with running_program(HOLDER, str(tmp_path)) as holder:
        assert line_of(holder) == "held"
        with pytest.raises(StateDirBusy, match=rf"in use by process {holder.pid};"):
            StateDirLock(tmp_path).acquire()


def test_a_killed_holder_leaves_no_stale_lock(tmp_path: Path) -> None:
    """The file stays behind, the lock does not, also when the next one comes at the same moment."""
    with running_program(HOLDER, str(tmp_path)) as holder:
        assert line_of(holder) == "held"
        holder.kill()
        with StateDirLock(tmp_path) as lock:
            assert lock.path.exists()


def test_a_release_lets_the_next_one_in(tmp_path: Path) -> None:
    """Also within one process, where two locks are two holders."""
    with StateDirLock(tmp_path), pytest.raises(StateDirBusy):
        StateDirLock(tmp_path).acquire()
    with StateDirLock(tmp_path):
        pass


def test_locks_of_other_names_do_not_meet(tmp_path: Path) -> None:
    """The command and the servers below it lock the same directory for different things."""
    with StateDirLock(tmp_path, "up"), StateDirLock(tmp_path, "local-stack"):
        pass


def test_a_directory_that_cannot_be_is_an_explained_error(tmp_path: Path) -> None:
    """A file in the place of the state directory."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(LocalStackError, match="cannot be used"):
        StateDirLock(tmp_path / "file").acquire()
