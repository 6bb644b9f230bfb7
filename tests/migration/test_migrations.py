"""The schema: made once, whoever asks and how often, and the same by hand."""

import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from sinks import migrations
from tallyhook.errors import SchemaMismatch
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings, Installation
from tests.integration.relay.waiting import eventually

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


def test_the_text_of_a_phase_goes_on_from_where_the_schema_stands(
    database_settings: DatabaseSettings, installation: Installation, connection: Connection
) -> None:
    """A DBA runs the rest by hand, and finds nothing where there is nothing left."""
    version = connection.info.server_version
    before = migrations.chain()[-2].number
    whole = migrations.render(installation, version)
    rest = migrations.render(installation, version, "pre", since=before)
    assert "CREATE TABLE" in rest
    connection.execute(whole[: whole.index(f"-- Running upgrade {before} ->")].encode() + b"COMMIT;")
    with pytest.raises(SchemaMismatch, match=f"stands at revision {before}, this program needs"):
        migrations.check(connection, installation)
    connection.execute(rest.encode())
    migrations.check(connection, installation)
    assert migrations.upgrade(database_settings, installation) == (migrations.HEAD, migrations.HEAD)
    assert migrations.render(installation, version, "post", since=migrations.HEAD) == ""
    with pytest.raises(SchemaMismatch, match="revision 9999 is none of this program's"):
        migrations.render(installation, version, since="9999")


def test_a_migration_that_waits_for_a_table_does_not_hold_up_the_others(
    database_settings: DatabaseSettings, database_url: str, installation: Installation, connection: Connection
) -> None:
    """Whoever works with a table queues behind a migration that waits for it: so it waits in short tries, and goes on
    once the long reader has ended."""
    migrations.upgrade(database_settings, installation)
    environment = os.environ | {
        "TALLYHOOK_DATABASE_URL": database_url,
        "TALLYHOOK_TOPIC_PREFIX": installation.topic_prefix,
        "TALLYHOOK_SCHEMA": installation.schema_name,
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    command = [sys.executable, "-m", "tests.migration.next_release", "migrate", "--phase", "pre"]
    deposits = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(installation.schema_name, "pg_deposits"))
    waits = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'tallyhook-migrate' AND wait_event_type = 'Lock'"
    with connect(database_settings, "test") as reader, reader.transaction():
        reader.execute(deposits)
        migration = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        eventually("the migration waits", lambda: connection.execute(waits.encode()).fetchall(), 60)
        connection.execute("SET statement_timeout = '20s'")
        for _ in range(3):
            connection.execute(deposits)
        assert migration.poll() is None
    assert migration.communicate(timeout=60)[0].strip().endswith("from 0003 to revision 0004")


def test_text_for_an_older_server_stores_the_column(installation: Installation) -> None:
    """PostgreSQL below 18 knows no virtual columns; names and types are the same."""
    assert ") STORED" in migrations.render(installation, 170_002)
    assert ") VIRTUAL" in migrations.render(installation, 180_000)


def test_a_schema_that_was_never_made_is_told_so(connection: Connection, installation: Installation) -> None:
    """The message names the schema and the command."""
    with pytest.raises(SchemaMismatch, match=r"stands at revision none.*tallyhook migrate"):
        migrations.check(connection, installation)


def test_a_newer_schema_is_refused_unless_it_bears_this_program(
    database_settings: DatabaseSettings, installation: Installation, connection: Connection
) -> None:
    """An older program writes into a newer schema only where that says so."""
    migrations.upgrade(database_settings, installation)
    table = sql.Identifier(installation.schema_name, "alembic_version")
    revisions = sql.Identifier(installation.schema_name, "schema_revisions")
    connection.execute(sql.SQL("UPDATE {} SET version_num = '9999'").format(table))
    with pytest.raises(SchemaMismatch, match="9999"):
        migrations.check(connection, installation)
    note = sql.SQL("INSERT INTO {} (revision, phase, compatible_from) VALUES ('9999', 'pre', %s)").format(revisions)
    connection.execute(note, (migrations.HEAD,))
    migrations.check(connection, installation)
    connection.execute(sql.SQL("UPDATE {} SET compatible_from = '9998' WHERE revision = '9999'").format(revisions))
    with pytest.raises(SchemaMismatch, match="needs programs of revision 9998 or newer"):
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
