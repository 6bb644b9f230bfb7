"""The grants suffice for every statement of their role, and each of them is needed by one."""

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import sql

from sinks import migrations
from tallyhook.operations.access import role_script
from tallyhook.operations.access.grants import TABLES, Grant, Role, grants, role_names
from tallyhook.postgres import Connection, Queries
from tallyhook.settings import DatabaseSettings, Installation

SINK = ("batch", "fence", "correlations", "parking", "quarantine", "store_watch", "withdrawals", "sequences")
FILES: Mapping[Role, Sequence[tuple[str, str]]] = {
    "sink": [("sinks", f"sql/{name}.sql") for name in SINK],
    "relay": [("sinks", "sql/relay.sql")],
    "tools": [("tallyhook.operations", f"{name}.sql") for name in ("redrive", "quarantine", "backfill", "gaps")],
    "operator": [
        ("tallyhook.operations", "accepted_losses.sql"),
        ("tallyhook.operations", "rewound.sql"),
        ("tallyhook.operations.cutover", "import.sql"),
    ],
}
"""The files whose statements a role runs."""

REVISION = "SELECT r.compatible_from FROM {schema}.schema_revisions r, {schema}.alembic_version v"
"""Asked by each of them before it works."""

APART: Mapping[Role, Sequence[str]] = {
    "topics": (
        (
            "INSERT INTO {schema}.installed_topics (topic, topic_id, partitions) VALUES ('t', 'i', 1)"
            " ON CONFLICT (topic) DO NOTHING"
        ),
        "SELECT topic FROM {schema}.installed_topics",
    ),
    "correlations": (
        (
            "INSERT INTO {schema}.pg_deposit_correlations"
            " (pg_deposit_id, merchant_reference, our_order_id, our_user_id) VALUES ('d', 'r', 'o', 'u')"
        ),
    ),
}
_EMPTY_COPY = b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\xff\xff"
_NOT_TRIED = ("BEGIN", "CREATE", "ANALYZE")


@dataclass(frozen=True)
class Prepared:
    """A schema whose roles have their grants."""

    connection: Connection
    schema: str
    names: Mapping[Role, str]


@pytest.fixture
def prepared(database_url: str, installation: Installation) -> Iterator[Prepared]:
    """Made with the scripts that the command prints; the roles are dropped afterwards, for they are the server's."""
    schema = installation.schema_name
    names = role_names(f"r{uuid.uuid4().hex[:8]}")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(role_script.roles(schema, names).encode())
        connection.execute("RESET ROLE")
        migrations.upgrade(DatabaseSettings.model_validate({"url": database_url}), installation)
        _give_to(connection, schema, names["owner"])
        connection.execute(role_script.grants(schema, names).encode())
        connection.execute(
            "CREATE TEMPORARY TABLE staged (kind text, object_id text, owner_id text, place text, content jsonb)"
        )
        connection.execute("GRANT ALL ON staged TO PUBLIC")
        try:
            yield Prepared(connection, schema, names)
        finally:
            connection.execute("RESET ROLE")
            connection.execute("DROP TABLE staged")
            # The owner last: what it gave to the others goes with them.
            for name in (*(names[role] for role in names if role != "owner"), names["owner"]):
                connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(name)))
                connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def test_every_statement_may_be_run(prepared: Prepared) -> None:
    """No statement of a role is refused."""
    refused = [
        (role, name, reason)
        for role in TABLES
        for name, reason in _refused(prepared, role, _statements(prepared, role)).items()
    ]
    assert refused == []


@pytest.mark.timeout(120)
def test_each_grant_is_needed(prepared: Prepared) -> None:
    """Without any one of them a statement of its role is refused, and PostgreSQL names the table."""
    statements = {role: _statements(prepared, role) for role in TABLES}
    unneeded = []
    for grant in grants():
        _change(prepared, "REVOKE {} ON {} FROM {}", grant)
        touching = {name: text for name, text in statements[grant.role].items() if grant.table in text}
        reasons = _refused(prepared, grant.role, touching).values()
        if not any(grant.table in reason for reason in reasons):
            unneeded.append(grant)
        _change(prepared, "GRANT {} ON {} TO {}", grant)
    assert unneeded == []


def test_the_console_reads_everything_and_writes_nothing(prepared: Prepared) -> None:
    """Tables of a later migration are read as well; of none of them can it change a row."""
    connection, schema = prepared.connection, sql.Identifier(prepared.schema)
    connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(prepared.names["owner"])))
    connection.execute(sql.SQL("CREATE TABLE {}.of_a_later_migration (x int)").format(schema))
    connection.execute("RESET ROLE")
    found = connection.execute(
        "SELECT tablename, has_table_privilege(%(role)s, format('%%I.%%I', schemaname, tablename), 'SELECT'),"
        " has_table_privilege(%(role)s, format('%%I.%%I', schemaname, tablename), 'INSERT, UPDATE, DELETE, TRUNCATE')"
        " FROM pg_tables WHERE schemaname = %(schema)s",
        {"role": prepared.names["console"], "schema": prepared.schema},
    ).fetchall()
    assert "of_a_later_migration" in {row[0] for row in found}
    assert {(may_read, may_write) for _, may_read, may_write in found} == {(True, False)}


def test_the_scripts_may_be_run_again(prepared: Prepared) -> None:
    """Repeated, they change nothing and fail at nothing."""
    for text in (
        role_script.roles(prepared.schema, prepared.names),
        role_script.grants(prepared.schema, prepared.names),
    ):
        prepared.connection.execute(text.encode())
    assert _refused(prepared, "sink", _statements(prepared, "sink")) == {}


def _statements(prepared: Prepared, role: Role) -> dict[str, str]:
    """The statements of a role by file and name."""
    found = {
        f"{path}:{name}": Queries(package, path, prepared.schema)[name].as_string(prepared.connection)
        for package, path in FILES.get(role, ())
        for name in sorted(Queries(package, path, prepared.schema).names)
    }
    extra = APART.get(role, (REVISION,))
    return found | {f"apart:{number}": text.format(schema=prepared.schema) for number, text in enumerate(extra)}


def _refused(prepared: Prepared, role: Role, statements: Mapping[str, str]) -> dict[str, str]:
    """Which statements are refused to a role, with the reason; whatever one does is rolled back."""
    connection, found = prepared.connection, {}
    connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(prepared.names[role])))
    try:
        for name, text in statements.items():
            try:
                with connection.transaction(force_rollback=True):
                    _try(connection, _numbered(text))
            except psycopg.errors.InsufficientPrivilege as failure:
                found[name] = str(failure)
    finally:
        connection.execute("RESET ROLE")
    return found


def _try(connection: Connection, text: str) -> None:
    """Plans it, which asks for the rights and needs no values; what cannot be planned is run, or left out."""
    word = re.sub(r"^(\s*--.*\n)*", "", text).split()[0].upper()
    if word in _NOT_TRIED:
        return
    if word == "COPY":
        with connection.cursor() as cursor, cursor.copy(text.encode()) as copy:
            if "BINARY" in text:
                copy.write(_EMPTY_COPY)
    elif word == "LOCK":
        connection.execute(text.encode())
    else:
        connection.execute(b"EXPLAIN (GENERIC_PLAN) " + text.encode())


def _numbered(text: str) -> str:
    """psycopg's placeholders as PostgreSQL's own."""
    names: dict[str, int] = {}
    count = iter(range(1, 1000))

    def number(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        return f"${next(count)}" if found[1] is None else f"${names.setdefault(found[1], len(names) + 1)}"

    return re.sub(r"%\((\w+)\)s|%s|%%", number, text)


def _give_to(connection: Connection, schema: str, owner: str) -> None:
    """As if the owner itself had migrated."""
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
    for (table,) in tables:
        statement = sql.SQL("ALTER TABLE {} OWNER TO {}").format(sql.Identifier(schema, table), sql.Identifier(owner))
        connection.execute(statement)


def _change(prepared: Prepared, statement: str, grant: Grant) -> None:
    prepared.connection.execute(
        sql.SQL(statement).format(
            sql.SQL(grant.privilege),
            sql.Identifier(prepared.schema, grant.table),
            sql.Identifier(prepared.names[grant.role]),
        )
    )
