"""The SQL that a DBA runs: roles and schema before the first migration, grants after each one. No password is in it."""

from collections.abc import Iterator, Mapping

from psycopg import sql

from tallyhook.operations.access.grants import ROLES, TABLES, Role

_MAKE_ROLE = """\
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {literal}) THEN
    CREATE ROLE {name} LOGIN;
  END IF;
END $$;"""

_CONNECT = """\
DO $$ BEGIN
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO {names}', current_database());
  EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO {temporary}', current_database());
END $$;"""


def roles(schema: str, names: Mapping[Role, str]) -> str:
    """Makes the roles and the schema; safe to repeat. To be run by one who may create roles, before `migrate`.

    Args:
        names: of the roles, as `grants.role_names` gives them.
    """
    lines = [f"-- The roles of the installation in schema {schema}. Give each one its password or certificate apart."]
    lines.append("BEGIN;")
    for role, name in names.items():
        lines.append(f"-- {role}: {ROLES[role]}.")
        lines.append(_text(_MAKE_ROLE, literal=sql.Literal(name), name=sql.Identifier(name)))
    owner = sql.Identifier(names["owner"])
    everyone = _list(names[role] for role in names)
    lines += [
        _text(_CONNECT, names=everyone, temporary=_list((names["console"], names["operator"]))),
        _text(
            "CREATE SCHEMA IF NOT EXISTS {schema} AUTHORIZATION {owner};", schema=sql.Identifier(schema), owner=owner
        ),
        "-- `doctor` counts every session of the server; without this it sees its own alone.",
        _text("GRANT pg_read_all_stats TO {console};", console=sql.Identifier(names["console"])),
        "COMMIT;",
    ]
    return "\n".join(lines) + "\n"


def grants(schema: str, names: Mapping[Role, str]) -> str:
    """Takes every privilege on the tables from the roles and gives the least that suffice, in one transaction.

    To be run by the owner, after each `migrate`.
    """
    return "\n".join(["BEGIN;", *_grants(schema, names), "COMMIT;"]) + "\n"


def _grants(schema: str, names: Mapping[Role, str]) -> Iterator[str]:
    place, owner = sql.Identifier(schema), sql.Identifier(names["owner"])
    others = _list(name for role, name in names.items() if role != "owner")
    console = sql.Identifier(names["console"])
    yield _text("REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {others};", schema=place, others=others)
    yield _text("GRANT USAGE ON SCHEMA {schema} TO {others};", schema=place, others=others)
    yield f"-- {names['console']} reads every table, those of later migrations too."
    yield _text("GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {console};", schema=place, console=console)
    yield _text(
        "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA {schema} GRANT SELECT ON TABLES TO {console};",
        owner=owner,
        schema=place,
        console=console,
    )
    for role, tables in TABLES.items():
        yield f"-- {names[role]}: {ROLES[role]}."
        for table, privileges in tables.items():
            yield _text(
                f"GRANT {', '.join(privileges)} ON {{table}} TO {{role}};",
                table=sql.Identifier(schema, table),
                role=sql.Identifier(names[role]),
            )


def _list(names: Iterator[str] | tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(name) for name in names)


def _text(template: str, **parts: sql.Composable) -> str:
    # The templates are those above; names are quoted by psycopg.
    return sql.SQL(template).format(**parts).as_string(None)
