"""A managed process: how it starts and ends, and that it never outlives those who keep it."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tallyhook.errors import LocalStackError
from tallyhook.local import process as process_module
from tallyhook.local.process import ManagedProcess
from tests.integration.local.conftest import await_gone, await_true, family_of, kill_hard, line_of, running_program

IDLE = "import signal; print('ready', flush=True); signal.pause()"
DEAF = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True)\n"
    "while True: signal.pause()"
)
WITH_HELPER = (
    "import signal, subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
    "print('ready', flush=True); signal.pause()"
)
Make = Callable[..., ManagedProcess]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes managed Python programs and ends them after the test."""
    made: list[ManagedProcess] = []

    def make_one(program: str, **options: object) -> ManagedProcess:
        log = tmp_path / "logs" / f"{len(made)}.log"
        argv = [sys.executable, "-c", program]
        made.append(ManagedProcess("program", argv, log_path=log, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make_one
    for one in made:
        one.stop()


def is_ready(one: ManagedProcess) -> bool:
    """Whether the program has got as far as its first line."""
    return "ready" in one.log_path.read_text(encoding="utf-8")


def test_a_stop_is_clean_and_tells_the_exit_code(make: Make) -> None:
    """The child gets the stop signal, may end its own way, and its code is passed on."""
    one = make("import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n" + IDLE)
    one.start()
    assert await_true(lambda: is_ready(one))
    assert one.running()
    assert one.exit_code is None
    one.stop()
    assert not one.running()
    assert one.exit_code == 7
    assert one.pid is None


def test_a_child_that_ends_by_itself_is_noticed(make: Make) -> None:
    """The guardian goes with the child and passes on its code."""
    one = make("import sys; sys.exit(3)")
    one.start()
    assert await_true(lambda: not one.running())
    assert one.exit_code == 3


def test_a_deaf_child_is_killed_after_its_time(make: Make) -> None:
    """A stop ends within its bound whatever the child does."""
    one = make(DEAF, stop_seconds=0.5)
    one.start()
    assert await_true(lambda: is_ready(one))
    one.stop()
    assert one.exit_code == 128 + signal.SIGKILL


def test_kill_is_the_crash_of_the_child_and_a_start_may_follow(make: Make) -> None:
    """After `kill` the process is gone when the call returns, and can be started again with the log appended."""
    one = make(IDLE)
    one.start()
    assert await_true(lambda: is_ready(one))
    first = one.pid
    one.kill()
    assert not one.running()
    assert one.exit_code == 128 + signal.SIGKILL
    one.start()
    assert one.pid not in (None, first)
    assert await_true(lambda: one.log_path.read_text(encoding="utf-8").count("ready") == 2)


def test_helpers_of_a_killed_child_go_with_it(make: Make) -> None:
    """What the child started in its process group does not live on without it."""
    one = make(WITH_HELPER)
    one.start()
    assert await_true(lambda: is_ready(one))
    assert one.pid is not None
    helpers = psutil.Process(one.pid).children()
    assert len(helpers) == 1
    one.kill()
    assert await_gone(helpers) == []


def test_a_command_that_is_not_there_is_named(make: Make, tmp_path: Path) -> None:
    """The error names the command and why it could not be started."""
    one = ManagedProcess("ghost", [str(tmp_path / "no such program")], log_path=tmp_path / "ghost.log")
    with pytest.raises(LocalStackError, match=r"ghost could not be started: .*no such program"):
        one.start()
    assert not one.running()


def test_a_second_start_is_refused(make: Make) -> None:
    """One object keeps one process; a second would be lost from sight."""
    one = make(IDLE)
    one.start()
    with pytest.raises(LocalStackError, match="is running already"):
        one.start()


def test_the_environment_is_the_given_one(make: Make) -> None:
    """`env` replaces the whole environment of the child."""
    one = make("import os; print(os.environ.get('COLOUR'), 'HOME' in os.environ, 'ready')", env={"COLOUR": "blue"})
    one.start()
    assert await_true(lambda: not one.running())
    assert one.log_path.read_text(encoding="utf-8") == "blue False ready\n"


def test_ctrl_c_in_the_terminal_passes_it_by(make: Make) -> None:
    """Neither the child nor its guardian is in the process group that a terminal interrupts."""
    one = make(IDLE)
    one.start()
    assert one.pid is not None
    assert one.guardian_pid is not None
    groups = {os.getpgid(one.pid), os.getpgid(one.guardian_pid)}
    assert os.getpgid(0) not in groups
    assert os.getsid(one.pid) != os.getsid(0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
@pytest.mark.parametrize("program", [IDLE, DEAF], ids=["idle", "deaf"])
def test_the_death_of_the_guardian_is_the_childs(make: Make, program: str) -> None:
    """kill -9 of the guardian leaves no child behind, and the next start works."""
    one = make(program)
    one.start()
    assert await_true(lambda: is_ready(one))
    child = psutil.Process(one.pid)
    kill_hard(one.guardian_pid)
    assert await_gone([child]) == []
    assert not one.running()
    one.start()
    assert one.running()


def test_the_death_of_the_parent_ends_child_and_guardian(tmp_path: Path) -> None:
    """kill -9 of the process that started it: the child is asked to end, and ends its own way."""
    holder = """
import sys, time
from pathlib import Path
from tallyhook.local.process import ManagedProcess
one = ManagedProcess("p", [sys.executable, "-c", sys.argv[2]], log_path=Path(sys.argv[1]) / "p.log")
one.start()
print(one.pid, flush=True)
time.sleep(600)
"""
    last_words = (
        "import signal, sys\n"
        "def end(*_):\n    print('clean end', flush=True); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n" + IDLE
    )
    with running_program(holder, str(tmp_path), last_words) as program:
        assert line_of(program).isdigit()
        log = tmp_path / "p.log"
        assert await_true(lambda: "ready" in log.read_text(encoding="utf-8"))
        family = family_of(program.pid)
        assert len(family) == 2
        program.kill()
        assert await_gone(family) == []
        assert log.read_text(encoding="utf-8") == "ready\nclean end\n"


def test_a_log_that_grew_large_is_moved_aside(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a start a log above the bound becomes `.1`, so that logs do not grow for ever."""
    monkeypatch.setattr(process_module, "LOG_ROTATE_BYTES", 100)
    one = make(IDLE)
    one.log_path.parent.mkdir(parents=True)
    one.log_path.write_text("x" * 101, encoding="utf-8")
    one.start()
    assert await_true(lambda: is_ready(one))
    assert one.log_path.read_text(encoding="utf-8") == "ready\n"
    assert one.log_path.with_name("0.log.1").stat().st_size == 101
