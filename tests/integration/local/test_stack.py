"""The started stack: what a second start finds, and what a crash of a server or of its keeper leaves."""

import contextlib
import socket
import time
from pathlib import Path

import psutil
import psycopg
import pytest

from tallyhook.errors import LocalStackError, StateDirBusy
from tallyhook.local.kafka_server import BROKER_PORT
from tallyhook.local.ports import Ports
from tallyhook.local.service import Progress
from tallyhook.local.stack import LocalStack
from tests.integration.local.conftest import (
    HOLDER,
    await_gone,
    await_true,
    family_of,
    kill_hard,
    line_of,
    packages_stack,
    running_program,
)
from tests.integration.local.contents import put, records, rows

# Recovery takes 3-6 s on an idle machine; the bound leaves room for a busy one.
READY_AGAIN_SECONDS = 30.0


def test_a_second_start_goes_on_where_the_first_was(state_dir: Path) -> None:
    """Data and addresses are the same, nothing is downloaded, formatted or made anew, and it is faster."""
    steps: list[list[Progress]] = [[], []]
    addresses: list[tuple[str, str]] = []
    seconds: list[float] = []
    for turn in (0, 1):
        with packages_stack(state_dir, steps[turn].append) as stack:
            put(stack, f"turn {turn}")
            addresses.append((stack.kafka_bootstrap, stack.database_url))
            seconds.append(stack.waiting_seconds)
            assert rows(stack) == records(stack) == ["turn 0", "turn 1"][: turn + 1]
    assert addresses[0] == addresses[1]
    assert {step.step for step in steps[1]} == {"kafka-start", "postgres-start"}
    assert any("formatting" in step.message for step in steps[0])
    assert not any("formatting" in step.message or "making" in step.message for step in steps[1])
    assert seconds[1] < seconds[0]


def test_a_killed_broker_comes_back_with_its_records(stack: LocalStack) -> None:
    """kill -9 of Java: `running` says so, `start` brings it back at the same address."""
    put(stack, "before")
    address = stack.kafka_bootstrap
    kill_hard(stack.kafka.pid)
    assert await_true(lambda: not stack.kafka.running())
    began = time.monotonic()
    stack.kafka.start()
    assert time.monotonic() - began < READY_AGAIN_SECONDS
    assert stack.kafka_bootstrap == address
    put(stack, "after")
    assert records(stack) == ["before", "after"]


def test_a_killed_postmaster_comes_back_though_a_backend_is_busy(stack: LocalStack) -> None:
    """kill -9 of the postmaster with a session deep in a computation: it is ended, the data is there."""
    put(stack, "before")
    with contextlib.closing(psycopg.connect(stack.database_url, autocommit=True)) as busy:
        backend = psutil.Process(busy.info.backend_pid)
        # A loop that never looks at its postmaster: without help it would hold the shared memory for an hour.
        busy.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 1000000000000)")
        kill_hard(stack.postgres.pid)
        assert await_true(lambda: not stack.postgres.running())
        assert backend.is_running()
        stack.postgres.start()
        assert await_gone([backend]) == []
    put(stack, "after")
    assert rows(stack) == ["before", "after"]


def test_a_stale_pid_file_of_another_living_process_does_not_bar_the_start(state_dir: Path) -> None:
    """After a reboot the number in postmaster.pid may be anybody's; that process is left alone."""
    with packages_stack(state_dir) as stack:
        put(stack, "before")
        pid_file = state_dir / "postgres" / "postmaster.pid"
        stale = pid_file.read_text(encoding="utf-8").splitlines()
        kill_hard(stack.postgres.pid)
        assert await_true(lambda: not stack.postgres.running())
        with running_program("import time; time.sleep(600)") as other:
            pid_file.write_text("\n".join([str(other.pid), *stale[1:]]) + "\n", encoding="utf-8")
            stack.postgres.start()
            assert other.poll() is None
        assert rows(stack) == ["before"]


def test_a_half_made_database_and_a_half_formatted_broker_are_made_anew(state_dir: Path) -> None:
    """What a kill in the middle of the first start leaves is replaced."""
    state_dir.mkdir(parents=True)
    half_formatted = state_dir / "kafka" / "data" / "meta.properties"
    half_formatted.parent.mkdir(parents=True)
    half_formatted.write_text("cluster.id=", encoding="utf-8")
    stack = packages_stack(state_dir)
    # The place of the data is only known when root's has been prepared.
    data = stack.own[1].home.data.resolve()  # type: ignore[attr-defined]
    draft = data.with_name(data.name + ".draft")
    draft.mkdir(parents=True)
    (draft / "PG_VERSION").write_text("18\n", encoding="utf-8")
    with stack:
        put(stack, "whole")
        assert rows(stack) == records(stack) == ["whole"]
    assert not draft.exists()


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
    put(stack, "before")
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
    assert rows(stack) == records(stack) == ["before", "after"]


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
    """When one server cannot start, the error says why and the other one is stopped."""
    with packages_stack(state_dir):
        pass
    (state_dir / "postgres" / "PG_VERSION").write_text("17\n", encoding="utf-8")
    stack = packages_stack(state_dir)
    with pytest.raises(LocalStackError, match="is of PostgreSQL 17, the installed server is 18"):
        stack.start()
    assert not stack.kafka.running()
    mark = f"-Dtallyhook.data={state_dir.resolve()}/kafka/data"
    assert not [process for process in psutil.process_iter() if mark in _command_line(process)]


def test_a_server_that_dies_at_its_start_shows_its_log(state_dir: Path) -> None:
    """The error carries the exit code, the last lines of the log and where it is."""
    with packages_stack(state_dir):
        pass
    control = state_dir / "postgres" / "global" / "pg_control"
    control.write_bytes(b"\0" * control.stat().st_size)
    with pytest.raises(LocalStackError, match=r"postgres ended with code \d+") as failure:
        packages_stack(state_dir).start()
    assert "postgres.log" in str(failure.value)
    assert "FATAL" in str(failure.value) or "PANIC" in str(failure.value)


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
