"""`tallyhook migrate`: brings the database schema to this program's revision."""

from enum import StrEnum

import typer

from tallyhook.cli.output import JsonOption, print_json
from tallyhook.errors import UsageError
from tallyhook.settings import load


class PhaseOption(StrEnum):
    """Which revisions run."""

    PRE = "pre"
    POST = "post"
    ALL = "all"


def migrate(
    phase: PhaseOption = typer.Option(
        PhaseOption.ALL,
        help="pre: only what programs of the release before bear, while they work. post: the rest, once none of them is"
        " left. all: both, with every program stopped.",
    ),
    sql: bool = typer.Option(False, "--sql", help="Print the statements instead of running them, for a DBA."),
    since: str | None = typer.Option(
        None, help="With --sql: the revision where the schema stands, such as 0002. Everything unless given."
    ),
    roles: bool = typer.Option(
        False,
        "--roles",
        help="Print the SQL that makes a role for each process and the schema, for before the first run.",
    ),
    grants: bool = typer.Option(
        False, "--grants", help="Print the SQL that gives each role the least rights, for after every run."
    ),
    role_prefix: str | None = typer.Option(
        None, help="With --roles or --grants: what the roles' names begin with. Unless given: the schema's name."
    ),
    server_version: int = typer.Option(
        180000, help="With --sql: server_version_num of the database they are for.", min=140000
    ),
    as_json: JsonOption = False,
) -> None:
    """Create or upgrade the tables in TALLYHOOK_SCHEMA. Safe to repeat, and safe to run twice at once.

    A rolling upgrade runs `--phase pre`, replaces the programs, then runs `--phase post`; the first of them on a schema
    that was never made makes all of it.

    Example: TALLYHOOK_DATABASE_URL=postgresql://localhost/shop tallyhook migrate

    Example: tallyhook migrate --phase pre

    Example: tallyhook migrate --sql --server-version 160004 > schema.sql

    Example: tallyhook migrate --roles | psql postgresql://admin@db/shop
    """
    from sinks import migrations

    if roles or grants:
        _print_scripts(load().installation.schema_name, role_prefix, roles=roles, grants=grants)
        return
    if since is not None and not sql:
        raise UsageError("--since belongs to --sql: a migration asks the database where it stands")
    settings = load()
    if sql:
        print(migrations.render(settings.installation, server_version, phase.value, since), end="")
        return
    before, after = migrations.upgrade(settings.database, settings.installation, phase.value)
    schema = settings.installation.schema_name
    if as_json:
        print_json({"schema": schema, "phase": phase.value, "before": before, "after": after})
    elif before == after:
        print(f"schema {schema}: nothing to do, it stands at revision {after}")
    else:
        print(f"schema {schema}: from {before or 'nothing'} to revision {after}")


def _print_scripts(schema: str, prefix: str | None, *, roles: bool, grants: bool) -> None:
    from tallyhook.operations.access import role_script
    from tallyhook.operations.access.grants import role_names

    names = role_names(prefix or schema)
    if roles:
        print(role_script.roles(schema, names), end="")
    if grants:
        print(role_script.grants(schema, names), end="")
