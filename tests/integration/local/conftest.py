"""Stacks of a test's own, and small programs that hold one, to be killed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tallyhook.local.ports import Ports
from tallyhook.local.postgres_server import PostgresServer
from tallyhook.local.service import Progress
from tallyhook.local.stack import LocalStack, local_stack
from tallyhook.settings import DatabaseSettings, KafkaSettings, LocalSettings

GONE_SECONDS = 30.0


def no_report(_progress: Progress) -> None:
    """For tests that do not look at the progress."""


def packages_stack(state_dir: Path, report: Callable[[Progress], None] = no_report) -> LocalStack:
    """A stack of servers without containers, whatever the machine and the environment offer."""
    kafka, database = KafkaSettings(bootstrap=None), DatabaseSettings(url=None)
    return local_stack(state_dir, kafka, database, report, LocalSettings(servers="packages"))


@pytest.fixture
def state_dir(tmp_path: Path) -> Iterator[Path]:
    """A state directory with a blank and Thai letters in its path; what lies outside of it is removed too."""
    path = tmp_path / "สถานะ of one"
    yield path
    packages_stack(path).discard()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Started Kafka and PostgreSQL for tests that kill them and bring them back."""
    one = packages_stack(tmp_path_factory.mktemp("to be killed"))
    with one:
        yield one
    one.discard()


@pytest.fixture
def database(state_dir: Path) -> Iterator[PostgresServer]:
    """A PostgreSQL of this test alone, not started."""
    one = PostgresServer(state_dir, Ports(state_dir), no_report)
    yield one
    one.stop()


HOLDER = """
import sys, time
from pathlib import Path
from tests.integration.local.conftest import packages_stack
stack = packages_stack(Path(sys.argv[1]))
stack.start()
print(stack.kafka.pid, stack.postgres.pid, flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def running_program(text: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A Python program in a process of its own, killed at the end at the latest."""
    program = subprocess.Popen(
        [sys.executable, "-c", text, *arguments], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    )
    try:
        yield program
    finally:
        program.kill()
        program.wait()
        if program.stdout is not None:
            program.stdout.close()


def line_of(program: "subprocess.Popen[str]") -> str:
    """The next line it prints; empty when it ended."""
    assert program.stdout is not None
    return program.stdout.readline().strip()


def family_of(pid: int) -> list[psutil.Process]:
    """Everything that lives below a process: guardians, servers and their children."""
    return psutil.Process(pid).children(recursive=True)


def await_gone(processes: list[psutil.Process], seconds: float = GONE_SECONDS) -> list[psutil.Process]:
    """Those that still live after that time; psutil tells a process from a later one of the same number."""
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def await_true(condition: Callable[[], bool], seconds: float = GONE_SECONDS) -> bool:
    """Whether it became true in that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True


def kill_hard(pid: int | None) -> None:
    """SIGKILL, from outside."""
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
