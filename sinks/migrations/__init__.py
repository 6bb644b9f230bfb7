"""Migrations of the installation's schema; the revisions are plain SQL files that a DBA can read and run."""

import io
import threading
import time
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, exc, pool
from sqlalchemy.engine import Connection as EngineConnection

from sinks.migrations.phases import Phase, Revision, judge, target
from tallyhook.errors import DatabaseUnavailable, SchemaMismatch
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings, Installation

HEAD = "0003"
"""The newest revision that this program knows; a test holds it to the newest file."""

NEEDED = "0003"
"""The oldest one that it works with: its last revision of the phase `pre`; a test holds it to the files."""

FOLDERS: tuple[Path, ...] = (Path(__file__).parent / "versions",)

LOCK_PATIENCE_SECONDS = 60.0
"""How long a migration tries to get its locks; each try is short, because whoever works waits behind it."""

LOCK_PAUSE_SECONDS = 1.0

_one_context = threading.Lock()
"""Alembic keeps its context in the process, so that two threads must not migrate at once; processes may."""


def upgrade(database: DatabaseSettings, installation: Installation, phase: Phase = "all") -> tuple[str | None, str]:
    """Brings the schema to the end of a phase; gives the revision before and the one after. Safe to call twice at once.

    Raises:
        SchemaMismatch: the phase cannot run now, see `phases.target`.
        DatabaseUnavailable: others hold the tables for too long; nothing was changed.
    """
    engine = create_engine("postgresql+psycopg://", creator=lambda: _plain(database), poolclass=pool.NullPool)
    deadline = time.monotonic() + LOCK_PATIENCE_SECONDS
    while True:
        try:
            return _upgrade_once(engine.connect(), installation, phase)
        except exc.OperationalError as failure:
            if not isinstance(failure.orig, psycopg.errors.LockNotAvailable):
                raise
            if time.monotonic() > deadline:
                raise DatabaseUnavailable(
                    f"tables of {installation.schema_name} are held by others for {LOCK_PATIENCE_SECONDS:g} s: nothing"
                    " was changed. Look for long transactions in pg_stat_activity (audit, a dump), then try again"
                ) from failure
            time.sleep(LOCK_PAUSE_SECONDS)


def _upgrade_once(connection: EngineConnection, installation: Installation, phase: Phase) -> tuple[str | None, str]:
    with _one_context, connection:
        before = _current(connection, installation)
        end = target(chain(), before, phase)
        if end is not None:
            command.upgrade(_config(installation, connection), end)
        connection.commit()
        after = _current(connection, installation)
    return before, after or ""


def render(installation: Installation, server_version: int, phase: Phase = "all", since: str | None = None) -> str:
    """The revisions of a phase as SQL text, for those who run it by hand; empty where there are none.

    Args:
        server_version: server_version_num of the database it is meant for, such as 180004.
        since: where the schema stands; None for one that was never made.

    Raises:
        SchemaMismatch: as `upgrade`, and for a revision that does not exist.
    """
    steps = chain()
    if since is not None and since not in {step.number for step in steps}:
        raise SchemaMismatch(f"revision {since} is none of this program's: {', '.join(step.number for step in steps)}")
    end = target(steps, since, phase)
    if end is None:
        return ""
    out = io.StringIO()
    config = _config(installation, None, output=out)
    config.attributes["server_version"] = server_version
    with _one_context:
        command.upgrade(config, end if since is None else f"{since}:{end}", sql=True)
    return out.getvalue()


def check(connection: Connection, installation: Installation) -> None:
    """Raises SchemaMismatch unless this program works with the schema.

    That is a schema from NEEDED to HEAD, or a newer one that says of itself that this program may stay.
    """
    found, compatible_from = standing(connection, installation)
    wrong = judge(found, NEEDED, HEAD, compatible_from)
    if wrong is not None:
        raise SchemaMismatch(f"schema {installation.schema_name} {wrong}")


def standing(connection: Connection, installation: Installation) -> tuple[str | None, str | None]:
    """The schema's revision, and the oldest program that works with it as far as the schema says so."""
    schema = psycopg.sql.Identifier(installation.schema_name)
    found = _first(connection, psycopg.sql.SQL("SELECT version_num FROM {}.alembic_version").format(schema), ())
    if found is None or found <= HEAD:
        return found, None
    asked = psycopg.sql.SQL("SELECT compatible_from FROM {}.schema_revisions WHERE revision = %s").format(schema)
    return found, _first(connection, asked, (found,))


def chain() -> list[Revision]:
    """Every revision among the files, in order."""
    return [
        Revision(script.revision, script.module.phase, script.module.compatible_from)
        for script in reversed(list(ScriptDirectory.from_config(_places()).walk_revisions()))
    ]


def _first(connection: Connection, query: psycopg.sql.Composed, parameters: tuple[str, ...]) -> str | None:
    try:
        row = connection.execute(query, parameters).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return None
    return str(row[0]) if row else None


def _plain(database: DatabaseSettings) -> psycopg.Connection[tuple[object, ...]]:
    connection = connect(database, "migrate")
    connection.autocommit = False
    return connection


def _places(output: io.StringIO | None = None) -> Config:
    config = Config(output_buffer=output) if output is not None else Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", "\n".join(map(str, FOLDERS)))
    return config


def _config(
    installation: Installation, connection: EngineConnection | None, output: io.StringIO | None = None
) -> Config:
    config = _places(output)
    config.attributes.update(
        schema=installation.schema_name, connection=connection, lock_key=installation.lock_key("migrate")
    )
    if connection is not None:
        raw = connection.connection.dbapi_connection
        config.attributes["server_version"] = raw.info.server_version if raw is not None else 0
    return config


def _current(connection: EngineConnection, installation: Installation) -> str | None:
    found = connection.exec_driver_sql(
        "SELECT to_regclass(%s) IS NOT NULL", (f'"{installation.schema_name}".alembic_version',)
    ).scalar_one()
    if not found:
        return None
    # The schema's name passed the setting's pattern: lower-case letters, digits and underscores.
    statement = f'SELECT version_num FROM "{installation.schema_name}".alembic_version'  # noqa: S608
    return connection.exec_driver_sql(statement).scalar()
