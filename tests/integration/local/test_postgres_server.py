"""PostgreSQL alone: what crashes of its processes and of its first start leave behind."""

import contextlib

import psutil
import psycopg
import pytest

from tallyhook.errors import LocalStackError
from tallyhook.local.postgres_server import PostgresServer
from tests.integration.local.conftest import await_gone, await_true, kill_hard, running_program
from tests.integration.local.contents import put_row, rows_of


@pytest.fixture
def started(database: PostgresServer) -> PostgresServer:
    """A running server with one row."""
    database.start()
    put_row(database.address, "before")
    return database


def test_it_is_local_and_durable(started: PostgresServer) -> None:
    """It listens on the loopback alone, without a Unix socket, and flushes what it commits."""
    names = ["listen_addresses", "unix_socket_directories", "fsync", "synchronous_commit", "max_connections"]
    with psycopg.connect(started.address) as connection:
        values = [connection.execute("SELECT current_setting(%s)", [name]).fetchone() for name in names]
        encoding = connection.execute("SELECT current_setting('server_encoding'), current_database()").fetchone()
    assert values == [("127.0.0.1",), ("",), ("on",), ("on",), ("100",)]
    assert encoding == ("UTF8", "tallyhook")
    addresses = {entry.laddr[0] for entry in psutil.Process(started.pid).net_connections("inet")}
    assert addresses == {"127.0.0.1"}


def test_a_killed_postmaster_comes_back_though_a_backend_is_busy(started: PostgresServer) -> None:
    """kill -9 of the postmaster with a session deep in a computation: it is ended, the data is there."""
    address = started.address
    with contextlib.closing(psycopg.connect(address, autocommit=True)) as busy:
        backend = psutil.Process(busy.info.backend_pid)
        # A loop that never looks at its postmaster: without help it would hold the shared memory for an hour.
        busy.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 1000000000000)")
        kill_hard(started.pid)
        assert await_true(lambda: not started.running())
        assert backend.is_running()
        started.start()
        assert await_gone([backend]) == []
    assert started.address == address
    put_row(address, "after")
    assert rows_of(address) == ["before", "after"]


def test_a_stale_pid_file_of_another_living_process_does_not_bar_the_start(started: PostgresServer) -> None:
    """After a reboot the number in postmaster.pid may be anybody's; that process is left alone."""
    pid_file = started.home.data / "postmaster.pid"
    stale = pid_file.read_text(encoding="utf-8").splitlines()
    kill_hard(started.pid)
    assert await_true(lambda: not started.running())
    with running_program("import time; time.sleep(600)") as other:
        pid_file.write_text("\n".join([str(other.pid), *stale[1:]]) + "\n", encoding="utf-8")
        started.start()
        assert other.poll() is None
    assert rows_of(started.address) == ["before"]


def test_a_half_made_database_is_made_anew(database: PostgresServer) -> None:
    """initdb works in a draft that only takes its place when whole; what a kill left of one is replaced."""
    data = database.home.data.resolve()
    draft = data.with_name(data.name + ".draft")
    draft.mkdir(parents=True)
    (draft / "PG_VERSION").write_text("18\n", encoding="utf-8")
    database.start()
    put_row(database.address, "whole")
    assert rows_of(database.address) == ["whole"]
    assert not draft.exists()


def test_a_server_that_dies_at_its_start_shows_its_log(started: PostgresServer) -> None:
    """The error carries the exit code, the last lines of the log and where it is."""
    started.stop()
    control = started.home.data / "global" / "pg_control"
    control.write_bytes(b"\0" * control.stat().st_size)
    with pytest.raises(LocalStackError, match=r"postgres ended with code \d+") as failure:
        started.start()
    assert "postgres.log" in str(failure.value)
    assert "FATAL" in str(failure.value) or "PANIC" in str(failure.value)
    assert not started.running()
