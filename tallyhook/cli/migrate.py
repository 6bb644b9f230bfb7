"""`tallyhook migrate`: brings the database schema to this program's revision."""

import typer

from tallyhook.cli.output import JsonOption, print_json
from tallyhook.settings import load


def migrate(
    sql: bool = typer.Option(False, "--sql", help="Print the statements instead of running them, for a DBA."),
    server_version: int = typer.Option(
        180000, help="With --sql: server_version_num of the database they are for.", min=140000
    ),
    as_json: JsonOption = False,
) -> None:
    """Create or upgrade the tables in TALLYHOOK_SCHEMA. Safe to repeat, and safe to run twice at once.

    Example: TALLYHOOK_DATABASE_URL=postgresql://localhost/shop tallyhook migrate

    Example: tallyhook migrate --sql --server-version 160004 > schema.sql
    """
    from sinks import migrations

    settings = load()
    if sql:
        print(migrations.render(settings.installation, server_version))
        return
    before, after = migrations.upgrade(settings.database, settings.installation)
    if as_json:
        print_json({"schema": settings.installation.schema_name, "before": before, "after": after})
    elif before == after:
        print(f"schema {settings.installation.schema_name}: already at revision {after}")
    else:
        print(f"schema {settings.installation.schema_name}: from {before or 'nothing'} to revision {after}")
