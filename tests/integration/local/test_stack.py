"""The started stack: what a second start finds, and what a crash of a server or of its keeper leaves."""

import os
import signal
import socket
import time
from pathlib import Path

import psutil
import pytest

from tallyhook.errors import LocalStackError, StateDirBusy
from tallyhook.local.kafka_server import BROKER_PORT
from tallyhook.local.ports import Ports
from tallyhook.local.postgres_server import PostgresServer
from tallyhook.local.service import Progress
from tallyhook.local.stack import LocalStack
from tests.integration.local.conftest import (
    HOLDER,
    await_gone,
    await_true,
    family_of,
    kill_hard,
    line_of,
    no_report,
    packages_stack,
    running_program,
)
from tests.integration.local.contents import put, records, rows

# Recovery takes 3-6 s on an idle machine; the bound leaves room for a busy one.
READY_AGAIN_SECONDS = 30.0


def test_a_second_start_goes_on_where_the_first_was(state_dir: Path) -> None:
    """Data and addresses are the same, and nothing is downloaded, formatted or made anew."""
    steps: list[list[Progress]] = [[], []]
    addresses: list[tuple[str, str]] = []
    for turn in (0, 1):
        with packages_stack(state_dir, steps[turn].append) as stack:
            put(stack, f"turn {turn}")
            addresses.append((stack.kafka_bootstrap, stack.database_url))
            assert stack.download_seconds + stack.waiting_seconds > 0
            assert rows(stack) == records(stack) == ["turn 0", "turn 1"][: turn + 1]
    assert addresses[0] == addresses[1]
    assert {step.step for step in steps[1]} == {"kafka-start", "postgres-start"}
    assert any("formatting" in step.message for step in steps[0])
    assert not any("formatting" in step.message or "making" in step.message for step in steps[1])


def test_a_killed_broker_comes_back_with_its_records(stack: LocalStack) -> None:
    """kill -9 of Java: `running` says so, `start` brings it back at the same address."""
    put(stack, "before the broker was killed")
    address = stack.kafka_bootstrap
    kill_hard(stack.kafka.pid)
    assert await_true(lambda: not stack.kafka.running())
    began = time.monotonic()
    stack.kafka.start()
    assert time.monotonic() - began < READY_AGAIN_SECONDS
    assert stack.kafka_bootstrap == address
    put(stack, "after")
    assert records(stack)[-2:] == ["before the broker was killed", "after"]


def test_the_death_of_the_parent_leaves_nothing_running(state_dir: Path) -> None:
    """kill -9 of the process that holds a stack ends Java, PostgreSQL and their guardians; then a start works."""
    with running_program(HOLDER, str(state_dir)) as holder:
        java, postmaster = (int(word) for word in line_of(holder).split())
        family = family_of(holder.pid)
        assert {java, postmaster} < {process.pid for process in family}
        holder.kill()
        # The next one does not wait until the last is gone: it must cope with servers that are just ending.
        with packages_stack(state_dir) as stack:
            assert await_gone(family) == []
            put(stack, "after")
            assert rows(stack) == records(stack) == ["after"]


def test_the_death_of_the_guardians_leaves_nothing_running(stack: LocalStack) -> None:
    """kill -9 of both guardians ends the servers too, and both can be started again with their data."""
    put(stack, "before the guardians were killed")
    servers = [psutil.Process(service.pid) for service in (stack.kafka, stack.postgres)]
    servers += [child for server in servers for child in server.children(recursive=True)]
    for service in (stack.kafka, stack.postgres):
        guardian = psutil.Process(service.pid).parent()
        assert guardian is not None
        assert "guardian.py" in " ".join(guardian.cmdline())
        guardian.kill()
    assert await_gone(servers) == []
    stack.kafka.start()
    stack.postgres.start()
    put(stack, "after")
    assert rows(stack)[-2:] == records(stack)[-2:] == ["before the guardians were killed", "after"]


def test_two_at_once_on_one_state_dir(state_dir: Path) -> None:
    """The second is told who holds it; the first is not disturbed."""
    with running_program(HOLDER, str(state_dir)) as holder:
        pids = line_of(holder)
        with pytest.raises(StateDirBusy, match=rf"in use by process {holder.pid}\b"):
            packages_stack(state_dir).start()
        assert all(psutil.pid_exists(int(pid)) for pid in pids.split())
        family = family_of(holder.pid)
    assert await_gone(family) == []


def test_a_port_taken_meanwhile(state_dir: Path) -> None:
    """While the stack stands, clients hold the address: an explained error. At a fresh start: a new port."""
    stack = packages_stack(state_dir)
    with stack:
        put(stack, "kept")
        port = Ports(state_dir)[BROKER_PORT]
        stack.kafka.stop()
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", port))
            other.listen()
            with pytest.raises(LocalStackError, match=rf"127\.0\.0\.1:{port} .* taken by another program"):
                stack.kafka.start()
            stack.stop()
            stack.start()
            assert not stack.kafka_bootstrap.endswith(f":{port}")
            assert records(stack) == rows(stack) == ["kept"]


def test_a_start_that_fails_leaves_nothing_running(state_dir: Path) -> None:
    """When one server cannot start, the error says why and the other one, in the midst of its start, is stopped."""
    stack = packages_stack(state_dir)
    home = PostgresServer(state_dir, Ports(state_dir), no_report).home
    data = home.data.resolve()
    data.mkdir(exist_ok=True)
    (data / "PG_VERSION").write_text("17\n", encoding="utf-8")
    if home.owner is not None:
        os.chown(data, *home.owner)
    with pytest.raises(LocalStackError, match="is of PostgreSQL 17, the installed server is 18"):
        stack.start()
    assert not stack.kafka.running()
    mark = f"-Dtallyhook.data={state_dir.resolve()}/kafka/data"
    assert not [process for process in psutil.process_iter() if mark in _command_line(process)]


def test_an_interrupt_in_the_midst_of_a_start_leaves_nothing_running(state_dir: Path) -> None:
    """Ctrl-C while Kafka starts: the program ends soon, with both servers ended."""
    program = """
import signal, sys
from pathlib import Path
from tallyhook.local.service import Progress
from tests.integration.local.conftest import packages_stack
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are born deaf to it
def report(progress: Progress) -> None:
    print(progress.step, flush=True)
packages_stack(Path(sys.argv[1]), report).start()
"""
    with running_program(program, str(state_dir)) as interrupted:
        while line_of(interrupted) != "kafka-start":
            assert interrupted.poll() is None
        family = family_of(interrupted.pid)
        interrupted.send_signal(signal.SIGINT)
        assert interrupted.wait(60) == -signal.SIGINT
    assert await_gone(family) == []
    assert not [process for process in psutil.process_iter() if str(state_dir) in " ".join(_command_line(process))]


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
