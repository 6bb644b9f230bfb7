"""Alembic's environment: everything is handed in by `sinks.migrations.upgrade`."""

from alembic import context
from sqlalchemy import text

LOCK_MILLISECONDS = 2000
"""How long a statement waits for a table: everybody who works with it waits behind the migration meanwhile."""


def _schema_once(schema: str) -> str:
    """Makes the schema where it is not there.

    CREATE SCHEMA IF NOT EXISTS demands the right to create schemas even where there is nothing to create, which the
    owner of a schema that a DBA made does not have. The schema's name passed the setting's pattern.
    """
    return (
        f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = '{schema}') THEN"
        f' CREATE SCHEMA "{schema}"; END IF; END $$'
    )


def run() -> None:
    """Runs the revisions on the connection that was handed in, or prints them."""
    attributes = context.config.attributes
    options = {"version_table": "alembic_version", "version_table_schema": attributes["schema"]}
    if context.is_offline_mode():
        context.configure(dialect_name="postgresql", literal_binds=True, **options)
        with context.begin_transaction():
            context.execute(_schema_once(attributes["schema"]))
            context.run_migrations()
        return
    connection = attributes["connection"]
    context.configure(connection=connection, transactional_ddl=True, **options)
    with context.begin_transaction():
        # One migration at a time: a second one waits here and then finds nothing to do.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": attributes["lock_key"]})
        connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_MILLISECONDS}ms'"))
        connection.exec_driver_sql(_schema_once(attributes["schema"]))
        context.run_migrations()


run()
