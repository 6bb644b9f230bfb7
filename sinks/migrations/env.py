"""Alembic's environment: everything is handed in by `sinks.migrations.upgrade`."""

from alembic import context
from sqlalchemy import text


def run() -> None:
    """Runs the revisions on the connection that was handed in, or prints them."""
    attributes = context.config.attributes
    options = {"version_table": "alembic_version", "version_table_schema": attributes["schema"]}
    if context.is_offline_mode():
        context.configure(dialect_name="postgresql", literal_binds=True, **options)
        with context.begin_transaction():
            context.execute(f'CREATE SCHEMA IF NOT EXISTS "{attributes["schema"]}"')
            context.run_migrations()
        return
    connection = attributes["connection"]
    context.configure(connection=connection, transactional_ddl=True, **options)
    with context.begin_transaction():
        # One migration at a time: a second one waits here and then finds nothing to do.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": attributes["lock_key"]})
        connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{attributes["schema"]}"'))
        context.run_migrations()


run()
