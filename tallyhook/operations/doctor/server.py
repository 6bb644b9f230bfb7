"""The database server: what is committed must stay, be written by this role, and be there after a failover."""

from collections.abc import Iterator

from tallyhook.operations.doctor.database import Server
from tallyhook.operations.doctor.findings import Finding
from tallyhook.settings import Settings

LEAST_VERSION = 140_000
CONNECTIONS = 12
"""What one sink, one relay, their successors in a rolling restart, and a few commands take."""


def examine(settings: Settings, server: Server) -> Iterator[Finding]:
    """Every danger in the server's settings."""
    if server.version < LEAST_VERSION:
        yield Finding(
            "server_version",
            "breaks",
            ("P8",),
            "the database server",
            f"PostgreSQL {server.version // 10_000}",
            f"PostgreSQL {LEAST_VERSION // 10_000} or newer",
            "its tables and statements are not tested there",
            "upgrade the server with pg_upgrade",
        )
    if server.encoding != "UTF8":
        yield Finding(
            "server_encoding",
            "breaks",
            ("P1", "P5"),
            "the database",
            f"encoding {server.encoding}",
            "encoding UTF8",
            "events with Thai text cannot be stored and are set aside",
            "CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0, then tallyhook migrate",
        )
    if server.recovering or server.read_only:
        yield Finding(
            "server_read_only",
            "breaks",
            ("P8",),
            "the database server" if server.recovering else f"database role {server.role}",
            "a standby" if server.recovering else "default_transaction_read_only=on",
            "a server that takes writes",
            "nothing is applied",
            "target_session_attrs=read-write with all hosts in TALLYHOOK_DATABASE_URL"
            if server.recovering
            else f'ALTER ROLE "{server.role}" RESET default_transaction_read_only',
        )
    yield from _durability(settings, server)
    if server.free_connections < CONNECTIONS:
        yield Finding(
            "connections_scarce",
            "warning",
            ("P8",),
            "the database server",
            f"{max(0, server.free_connections)} connections are free",
            f"at least {CONNECTIONS}",
            "a process that restarts finds no connection",
            "ALTER SYSTEM SET max_connections = ..., then restart the server; or end idle clients",
        )


def _durability(settings: Settings, server: Server) -> Iterator[Finding]:
    replicated = settings.installation.durability == "replicated"
    off = [name for name, on in (("fsync", server.fsync), ("full_page_writes", server.full_page_writes)) if not on]
    if off:
        yield Finding(
            "fsync_off",
            "breaks",
            ("P1", "P2"),
            "the database server",
            ", ".join(f"{name}=off" for name in off),
            ", ".join(f"{name}=on" for name in off),
            "a power cut damages the tables: credits and positions are gone",
            "; ".join(f"ALTER SYSTEM SET {name} = on" for name in off) + "; SELECT pg_reload_conf()",
        )
    commit = server.synchronous_commit
    if commit == "off" or (replicated and commit == "local"):
        yield Finding(
            "synchronous_commit",
            "breaks" if replicated else "warning",
            ("P1", "P2"),
            f"database role {server.role}",
            f"synchronous_commit={commit}",
            "synchronous_commit=on" + (" or remote_apply" if replicated else ""),
            "the last commits are gone after a failover or a crash, though their effects may have been sent",
            f'ALTER ROLE "{server.role}" SET synchronous_commit = on, and the same in postgresql.conf',
        )
    if replicated and not server.standbys.strip():
        yield Finding(
            "synchronous_standby",
            "warning",
            ("P1", "P2"),
            "the database server",
            "synchronous_standby_names is empty",
            "a standby that confirms each commit, since TALLYHOOK_DURABILITY=replicated",
            "a failover loses the last commits; the relay then stops with `outbox rewound`",
            "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (...)'; SELECT pg_reload_conf()",
        )
