"""What pgbouncer does to a connection: session pooling keeps what sink and relay rely on, transaction pooling not."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from psycopg.conninfo import conninfo_to_dict

from tallyhook.errors import DatabaseUnavailable
from tallyhook.local.ports import Ports
from tallyhook.local.readiness import port_answers
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings
from tests.running import await_true

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
Connect = Callable[[], Connection]

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")


@pytest.fixture
def pooled(request: pytest.FixtureRequest, database_url: str) -> Iterator[Connect]:
    """Connections by a pgbouncer of the wanted mode, which lets pass the options that Tallyhook starts with."""
    mode: Literal["session", "transaction", "strict"] = request.param
    # Not below pytest's own folder, which bars the user that it runs as when root starts it.
    folder = Path(tempfile.mkdtemp(prefix="tallyhook-pgbouncer-"))
    folder.chmod(0o755)
    port = Ports(folder)["pgbouncer"]
    known = conninfo_to_dict(database_url)
    _configure(folder, mode, port, known)
    command = [str(PGBOUNCER), str(folder / "pgbouncer.ini")]
    # It refuses to run as root.
    with subprocess.Popen([*command, "-u", "nobody"] if os.geteuid() == 0 else command) as process:
        try:
            await_true(lambda: port_answers(port) is None, 20, "pgbouncer")
            url = f"postgresql://{known['user']}@127.0.0.1:{port}/{known['dbname']}"
            settings = DatabaseSettings.model_validate({"url": url, "prepare": False})
            opened: list[Connection] = []

            def another() -> Connection:
                opened.append(connect(settings, "test"))
                return opened[-1]

            yield another
            for connection in opened:
                connection.close()
        finally:
            process.terminate()
            process.wait(20)
            shutil.rmtree(folder)


@pytest.mark.parametrize("pooled", ["session"], indirect=True)
def test_session_pooling_keeps_settings_and_notifications(pooled: Connect) -> None:
    """What a session sets is its own, and it is woken."""
    one, other = pooled(), pooled()
    one.execute("SET enable_seqscan = off")
    assert (_shown(one), _shown(other)) == ("off", "on")
    one.execute("LISTEN tallyhook_test")
    other.execute("SELECT pg_notify('tallyhook_test', '')")
    assert len(list(one.notifies(timeout=5, stop_after=1))) == 1


@pytest.mark.parametrize("pooled", ["transaction"], indirect=True)
def test_transaction_pooling_keeps_neither(pooled: Connect) -> None:
    """The reason why it is not supported: settings reach others, and nobody is woken."""
    one, other = pooled(), pooled()
    one.execute("SET enable_seqscan = off")
    assert _shown(other) == "off"
    one.execute("LISTEN tallyhook_test")
    with other.transaction():
        other.execute("SELECT pg_notify('tallyhook_test', '')")
    assert list(one.notifies(timeout=1, stop_after=1)) == []


@pytest.mark.parametrize("pooled", ["strict"], indirect=True)
def test_without_leave_for_the_options_the_reason_is_told(pooled: Connect) -> None:
    """An old pgbouncer refuses what it does not know, and names it."""
    with pytest.raises(DatabaseUnavailable, match="options"):
        pooled()


def _shown(connection: Connection) -> str:
    row = connection.execute("SHOW enable_seqscan").fetchone()
    assert row is not None
    return str(row[0])


def _configure(folder: Path, mode: str, port: int, known: dict[str, str | int | None]) -> None:
    lines = [
        "[databases]",
        f"* = host={known['host']} port={known['port']}",
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        f"listen_port = {port}",
        "unix_socket_dir =",
        "auth_type = trust",
        f"auth_file = {folder / 'users.txt'}",
        f"pool_mode = {'session' if mode == 'session' else 'transaction'}",
    ]
    if mode != "strict":
        lines.append("ignore_startup_parameters = options, extra_float_digits")
    (folder / "pgbouncer.ini").write_text("\n".join(lines) + "\n", encoding="ascii")
    (folder / "users.txt").write_text(f'"{known["user"]}" ""\n', encoding="ascii")
