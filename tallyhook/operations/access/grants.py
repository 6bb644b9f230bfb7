"""The least grants of PostgreSQL with which each process works, as one table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tallyhook.errors import UsageError

PREFIX_BYTES_MAX = 50
"""PostgreSQL's names have 63 bytes, the longest ending of a role's has 13."""

Role = Literal["owner", "sink", "relay", "topics", "console", "correlations", "tools", "operator"]
Privilege = Literal["SELECT", "INSERT", "UPDATE", "DELETE"]
Privileges = tuple[Privilege, ...]

ROLES: Mapping[Role, str] = {
    "owner": "`tallyhook migrate`; owns the schema and every table",
    "sink": "`tallyhook sink`",
    "relay": "`tallyhook relay`, every shard",
    "topics": "`tallyhook topics apply`",
    "console": "reads alone: the console, `tallyhook explain`, `timeline`, `parked`, `quarantine list` and `show`,"
    " `gaps` that only show, `audit`, `reconcile`, `compare`, `doctor`",
    "correlations": "the merchant's own service, where it inserts whose a deposit is",
    "tools": "`tallyhook redrive`, `quarantine resolve`, `backfill`, `gaps` that are closed",
    "operator": "by hand and seldom: `tallyhook import`, `sink accept-loss`, `relay recover`",
}
"""Who connects as what."""

_READ: Privileges = ("SELECT",)
_ADDED: Privileges = ("SELECT", "INSERT")
_WRITTEN: Privileges = ("SELECT", "INSERT", "UPDATE")
_KEPT: Privileges = ("SELECT", "INSERT", "UPDATE", "DELETE")

_REVISION: Mapping[str, Privileges] = {"alembic_version": _READ, "schema_revisions": _READ}
"""Whether the schema is the program's, asked before any work."""

TABLES: Mapping[Role, Mapping[str, Privileges]] = {
    "sink": {
        **_REVISION,
        "installed_topics": _READ,
        "pg_balance_txns": _ADDED,
        "pg_deposit_correlations": _ADDED,
        "pg_deposit_overpayment_flags": _ADDED,
        "pg_deposits": _WRITTEN,
        "pg_outbox": _ADDED,
        "pg_user_balance_entries": _ADDED,
        "pg_user_balances": _WRITTEN,
        "pg_webhook_inbox": _KEPT,
        "pg_withdrawal_fill_reversals": _ADDED,
        "pg_withdrawal_fills": _KEPT,
        "pg_withdrawals": _WRITTEN,
        "quarantined_events": _WRITTEN,
        "redeliveries": ("INSERT",),
        "relay_cursors": _READ,
        "sequence_gaps": _KEPT,
        "sequence_heads": _WRITTEN,
        "sequence_keeper": ("SELECT", "UPDATE"),
        "sequence_sources": _WRITTEN,
        "sink_offsets": _WRITTEN,
    },
    "relay": {
        **_REVISION,
        "installed_topics": _READ,
        "pg_outbox": ("SELECT", "DELETE"),
        "relay_cursors": _WRITTEN,
        "relay_installation": _ADDED,
    },
    "topics": {"installed_topics": _ADDED},
    "correlations": {"pg_deposit_correlations": ("INSERT",)},
    "tools": {
        **_REVISION,
        "backfills": _KEPT,
        "pg_webhook_inbox": _READ,
        "quarantined_events": ("SELECT", "UPDATE"),
        "sequence_gaps": ("SELECT", "INSERT", "DELETE"),
        "sequence_heads": _READ,
        "sequence_keeper": ("SELECT", "UPDATE"),
    },
    "operator": {
        **_REVISION,
        "accepted_losses": _ADDED,
        "imported_objects": _ADDED,
        "installed_topics": _READ,
        "pg_balance_txns": _ADDED,
        "pg_deposit_correlations": _ADDED,
        "pg_deposit_overpayment_flags": _ADDED,
        "pg_deposits": _ADDED,
        "pg_outbox": ("SELECT", "UPDATE"),
        "pg_user_balance_entries": _ADDED,
        "pg_user_balances": _WRITTEN,
        "pg_webhook_inbox": _READ,
        "pg_withdrawal_fill_reversals": _ADDED,
        "pg_withdrawal_fills": _ADDED,
        "pg_withdrawals": _ADDED,
        "quarantined_events": _READ,
        "relay_cursors": _READ,
        "relay_installation": _READ,
        "sink_offsets": _WRITTEN,
    },
}
"""What each role does to each table. The owner needs no grants, and the console reads every table."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One privilege of one role on one table."""

    role: Role
    table: str
    privilege: Privilege


def grants() -> Sequence[Grant]:
    """The whole table, one privilege a row."""
    return [
        Grant(role, table, privilege)
        for role, tables in TABLES.items()
        for table, privileges in tables.items()
        for privilege in privileges
    ]


def role_names(prefix: str) -> dict[Role, str]:
    """The names of the roles: two installations on one server share none, since roles belong to the whole server.

    Raises UsageError for a prefix with which PostgreSQL would cut the names off.
    """
    if not 0 < len(prefix.encode()) <= PREFIX_BYTES_MAX:
        raise UsageError(
            f"--role-prefix {prefix}: must have 1..{PREFIX_BYTES_MAX} bytes; unless given it is the schema's name"
        )
    return {role: f"{prefix}_{role}" for role in ROLES}
