"""Migrations of the installation's schema; the revisions are plain SQL files that a DBA can read and run."""

import io
import threading
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, pool
from sqlalchemy.engine import Connection as EngineConnection

from tallyhook.errors import SchemaMismatch
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings, Installation

HEAD = "0002"
"""The revision this program works with; a test holds it to the newest file."""


_one_context = threading.Lock()
"""Alembic keeps its context in the process, so that two threads must not migrate at once; processes may."""


def upgrade(database: DatabaseSettings, installation: Installation, revision: str = "head") -> tuple[str | None, str]:
    """Brings the schema to a revision; gives the one before and the one after. Safe to call twice at once."""
    engine = create_engine("postgresql+psycopg://", creator=lambda: _plain(database), poolclass=pool.NullPool)
    with _one_context, engine.connect() as connection:
        before = _current(connection, installation)
        command.upgrade(_config(installation, connection), revision)
        connection.commit()
        after = _current(connection, installation)
    return before, after or ""


def render(installation: Installation, server_version: int) -> str:
    """Every revision as SQL text, for those who run it by hand.

    Args:
        server_version: server_version_num of the database it is meant for, such as 180004.
    """
    out = io.StringIO()
    config = _config(installation, None, output=out)
    config.attributes["server_version"] = server_version
    with _one_context:
        command.upgrade(config, "head", sql=True)
    return out.getvalue()


def check(connection: Connection, installation: Installation) -> None:
    """Raises SchemaMismatch unless the schema stands at the revision of this program."""
    try:
        row = connection.execute(
            psycopg.sql.SQL("SELECT version_num FROM {}.alembic_version").format(
                psycopg.sql.Identifier(installation.schema_name)
            )
        ).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        row = None
    found = str(row[0]) if row else "none"
    if found != HEAD:
        raise SchemaMismatch(
            f"schema {installation.schema_name} stands at revision {found}, this program needs {HEAD}:"
            " run `tallyhook migrate`"
            + ("" if found < HEAD or found == "none" else " of the newer version, or deploy the newer program")
        )


def newest() -> str:
    """The newest revision among the files."""
    return str(ScriptDirectory(str(Path(__file__).parent)).get_current_head())


def _plain(database: DatabaseSettings) -> psycopg.Connection[tuple[object, ...]]:
    connection = connect(database, "migrate")
    connection.autocommit = False
    return connection


def _config(
    installation: Installation, connection: EngineConnection | None, output: io.StringIO | None = None
) -> Config:
    config = Config(output_buffer=output) if output is not None else Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
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
