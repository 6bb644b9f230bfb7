"""The schema: made once, whoever asks and how often, and the same by hand."""

import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from sinks import migrations
from tallyhook.errors import SchemaMismatch
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings, Installation

COLUMNS = """
  SELECT table_name, column_name, data_type, is_nullable, replace(column_default, %(schema)s, ''), is_generated
    FROM information_schema.columns WHERE table_schema = %(schema)s ORDER BY 1, ordinal_position"""
CONSTRAINTS = """
  SELECT c.relname, k.conname, replace(pg_get_constraintdef(k.oid), %(schema)s || '.', '')
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
   WHERE k.connamespace = %(schema)s::regnamespace ORDER BY 1, 2"""
INDEXES = """
  SELECT tablename, indexname, replace(indexdef, %(schema)s || '.', '')
    FROM pg_indexes WHERE schemaname = %(schema)s ORDER BY 1, 2"""
TRIGGERS = """
  SELECT event_object_table, trigger_name, event_manipulation, action_timing
    FROM information_schema.triggers WHERE trigger_schema = %(schema)s ORDER BY 1, 2, 3"""


@pytest.fixture
def connection(database_settings: DatabaseSettings) -> Iterator[Connection]:
    """A connection to look at the schema."""
    with connect(database_settings, "test") as opened:
        yield opened


def shape(connection: Connection, schema: str) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that makes up a schema, with its own name taken out."""
    parts = {"columns": COLUMNS, "constraints": CONSTRAINTS, "indexes": INDEXES, "triggers": TRIGGERS}
    return {name: connection.execute(text.encode(), {"schema": schema}).fetchall() for name, text in parts.items()}


def test_the_program_works_with_the_newest_revision() -> None:
    """HEAD is what `check` demands, so it must be the newest file."""
    assert migrations.newest() == migrations.HEAD


def test_twice_is_once(database_settings: DatabaseSettings, installation: Installation, connection: Connection) -> None:
    """The second run finds nothing to do and leaves the schema as it is."""
    assert migrations.upgrade(database_settings, installation) == (None, migrations.HEAD)
    before = shape(connection, installation.schema_name)
    assert migrations.upgrade(database_settings, installation) == (migrations.HEAD, migrations.HEAD)
    assert shape(connection, installation.schema_name) == before
    migrations.check(connection, installation)


def test_four_threads_at_once(
    database_settings: DatabaseSettings, installation: Installation, connection: Connection
) -> None:
    """One does the work, the others find it done; none fails."""
    outcomes: list[object] = []

    def upgrade() -> None:
        try:
            outcomes.append(migrations.upgrade(database_settings, installation)[1])
        except Exception as failure:  # noqa: BLE001  the test shows whatever one of them met
            outcomes.append(failure)

    threads = [threading.Thread(target=upgrade) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [migrations.HEAD] * 4
    migrations.check(connection, installation)


def test_four_processes_at_once(database_url: str, installation: Installation, connection: Connection) -> None:
    """The same for processes, which wait for each other in the database."""
    program = (
        "from sinks.migrations import upgrade; from tallyhook.settings import load; s = load();"
        " print(upgrade(s.database, s.installation)[1])"
    )
    environment = os.environ | {
        "TALLYHOOK_DATABASE_URL": database_url,
        "TALLYHOOK_TOPIC_PREFIX": installation.topic_prefix,
        "TALLYHOOK_SCHEMA": installation.schema_name,
    }
    command = [sys.executable, "-c", program]
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate(timeout=60)[0].strip() for process in started] == [migrations.HEAD] * 4
    migrations.check(connection, installation)


def test_the_rendered_text_makes_the_same_tables(
    database_settings: DatabaseSettings, installation: Installation, connection: Connection
) -> None:
    """What a DBA runs by hand ends in the schema that the program makes, and `check` accepts it."""
    by_hand = Installation(topic_prefix=installation.topic_prefix, schema_=f"t{uuid.uuid4().hex[:12]}")
    migrations.upgrade(database_settings, installation)
    try:
        connection.execute(migrations.render(by_hand, connection.info.server_version).encode())
        assert shape(connection, by_hand.schema_name) == shape(connection, installation.schema_name)
        migrations.check(connection, by_hand)
    finally:
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(by_hand.schema_name)))


def test_text_for_an_older_server_stores_the_column(installation: Installation) -> None:
    """PostgreSQL below 18 knows no virtual columns; names and types are the same."""
    assert ") STORED" in migrations.render(installation, 170_002)
    assert ") VIRTUAL" in migrations.render(installation, 180_000)


def test_a_schema_that_was_never_made_is_told_so(connection: Connection, installation: Installation) -> None:
    """The message names the schema and the command."""
    with pytest.raises(SchemaMismatch, match=r"stands at revision none.*tallyhook migrate"):
        migrations.check(connection, installation)


def test_a_newer_schema_is_refused(
    database_settings: DatabaseSettings, installation: Installation, connection: Connection
) -> None:
    """An older program must not write into it."""
    migrations.upgrade(database_settings, installation)
    table = sql.Identifier(installation.schema_name, "alembic_version")
    connection.execute(sql.SQL("UPDATE {} SET version_num = '9999'").format(table))
    with pytest.raises(SchemaMismatch, match="9999"):
        migrations.check(connection, installation)


def test_flags_cannot_be_changed(
    database_settings: DatabaseSettings, installation: Installation, connection: Connection
) -> None:
    """The table is append-only: UPDATE and DELETE are refused with SQLSTATE 55000."""
    migrations.upgrade(database_settings, installation)
    connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(installation.schema_name)))
    connection.execute(
        "INSERT INTO pg_deposits (pg_deposit_id, pg_version, status, our_order_id, our_user_id)"
        " VALUES ('dep', 1, 'open', 'o', 'u')"
    )
    connection.execute(
        "INSERT INTO pg_deposit_overpayment_flags VALUES"
        " ('clm', 'dep', 1, 'same_transfer_excess', 5, now(), 'open', 'contact_support', NULL, '{}', now())"
    )
    for statement in (
        "UPDATE pg_deposit_overpayment_flags SET amount_minor = 6",
        "DELETE FROM pg_deposit_overpayment_flags",
    ):
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            connection.execute(statement.encode())
