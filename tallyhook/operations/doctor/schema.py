"""The installation's schema: this program's revision, whole, its own, and writable."""

from collections.abc import Iterator

from schemas.topics import TopicNames
from sinks import migrations
from tallyhook.operations.doctor.database import Database
from tallyhook.operations.doctor.findings import Finding
from tallyhook.settings import Settings

_WRITTEN = ("SELECT", "INSERT", "UPDATE")
_APPENDED = ("SELECT", "INSERT")
PRIVILEGES: dict[str, tuple[str, ...]] = {
    "alembic_version": ("SELECT",),
    "schema_revisions": ("SELECT",),
    "installed_topics": ("SELECT",),
    "pg_webhook_inbox": (*_WRITTEN, "DELETE"),
    "redeliveries": _APPENDED,
    "pg_deposit_correlations": _APPENDED,
    "pg_deposits": _WRITTEN,
    "pg_deposit_overpayment_flags": _APPENDED,
    "pg_withdrawals": _WRITTEN,
    "pg_withdrawal_fills": (*_WRITTEN, "DELETE"),
    "pg_withdrawal_fill_reversals": _APPENDED,
    "pg_balance_txns": _APPENDED,
    "pg_user_balances": _WRITTEN,
    "pg_user_balance_entries": _APPENDED,
    "pg_outbox": (*_APPENDED, "DELETE"),
    "quarantined_events": _WRITTEN,
    "sink_offsets": _WRITTEN,
    "relay_cursors": _WRITTEN,
    "relay_installation": _APPENDED,
    "sequence_heads": _WRITTEN,
    "sequence_gaps": (*_WRITTEN, "DELETE"),
    "sequence_sources": _WRITTEN,
    "sequence_keeper": ("SELECT", "UPDATE"),
}
"""What sink and relay do to each table."""


def examine_revision(settings: Settings, wrong: str) -> Finding:
    """The schema is older or newer than this program; `wrong` says it in words."""
    schema = settings.installation.schema_name
    return Finding(
        "schema_revision",
        "breaks",
        ("P8",),
        f"schema {schema}",
        wrong,
        "the revision of this program",
        "sink and relay refuse to start; tables and positions are not checked",
        "deploy the newer program" if "newer" in wrong else "tallyhook migrate",
    )


def examine(settings: Settings, database: Database) -> Iterator[Finding]:
    """Every danger of a schema that this program works with."""
    schema = settings.installation.schema_name
    yield from _standing(schema, database.revision())
    if missing := database.missing_tables():
        yield Finding(
            "table_missing",
            "breaks",
            ("P1", "P8"),
            f"schema {schema}",
            f"without the tables {', '.join(missing)}",
            "every table of its revision",
            "what was kept there is gone, and sink or relay cannot work",
            "restore the database from a copy that has them; tallyhook migrate --sql shows how they look",
        )
    there = {table: needed for table, needed in PRIVILEGES.items() if table not in missing}
    if lacking := database.lacking(there):
        listed = ", ".join(f"{privilege} on {table}" for table, privilege in lacking)
        grants = "; ".join(
            f'GRANT {privilege} ON "{schema}".{table} TO "{database.server.role}"' for table, privilege in lacking
        )
        yield Finding(
            "privilege_missing",
            "breaks",
            ("P8",),
            f"database role {database.server.role}",
            f"lacks {listed}",
            "what sink and relay do to each table",
            "the transaction of a batch fails again and again, and nothing is applied",
            grants,
        )
    yield from _sharing(settings, database)


def _standing(schema: str, revision: str) -> Iterator[Finding]:
    """An upgrade that is on its way."""
    if revision > migrations.HEAD:
        yield Finding(
            "schema_newer",
            "warning",
            ("P8",),
            f"schema {schema}",
            f"stands at revision {revision}, which bears this program",
            f"programs that know it; this one knows {migrations.HEAD}",
            "the next revision may bear it no longer, and it does not start again then",
            "go on with the upgrade: deploy the newer program",
        )
    elif revision < migrations.HEAD:
        yield Finding(
            "schema_pending",
            "warning",
            ("P8",),
            f"schema {schema}",
            f"stands at revision {revision}",
            f"revision {migrations.HEAD}, once no program of the release before is left",
            "the next upgrade refuses to begin on it",
            "tallyhook migrate --phase post",
        )


def _sharing(settings: Settings, database: Database) -> Iterator[Finding]:
    own = TopicNames(settings.installation.topic_prefix).state_changes
    ending = TopicNames("").state_changes
    recorded = {topic for topic in database.installed_topics() if topic.endswith(ending)}
    applied = {position.topic for position in database.positions() if position.topic.endswith(ending)}
    if foreign := sorted((recorded | applied) - {own}):
        yield Finding(
            "schema_shared",
            "breaks",
            ("P2", "P3"),
            f"schema {settings.installation.schema_name}",
            f"belongs to {', '.join(foreign)} too",
            f"one installation a schema, test events (TALLYHOOK_LIVEMODE=false) apart from live ones; here {own}",
            "two installations write the same rows: test deposits credit users, and outbox numbers meet",
            "give this installation a TALLYHOOK_SCHEMA of its own: tallyhook migrate && tallyhook topics apply",
        )
