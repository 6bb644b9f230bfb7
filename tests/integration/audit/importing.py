"""What an import leaves: the rows that stand in a schema as if the handler before had made them, and nothing else."""

from typing import LiteralString

from tallyhook.postgres import Connection

_TABLES: tuple[tuple[LiteralString, LiteralString, LiteralString, LiteralString], ...] = (
    ("deposit", "pg_deposits", "pg_deposit_id", "pg_deposit_id"),
    ("overpayment_flag", "pg_deposit_overpayment_flags", "claim_id", "pg_deposit_id"),
    ("withdrawal", "pg_withdrawals", "pg_withdrawal_id", "pg_withdrawal_id"),
    ("fill", "pg_withdrawal_fills", "leg_ref", "pg_withdrawal_id"),
    ("reversal", "pg_withdrawal_fill_reversals", "leg_ref", "pg_withdrawal_id"),
    ("transaction", "pg_balance_txns", "btxn_id", "btxn_id"),
)
"""Kind, table, key and owner."""
_OPENING: LiteralString = """
  INSERT INTO pg_user_balance_entries (entry_key, user_id, amount_minor, event_id)
  SELECT 'import:' || user_id || ':opening', user_id, 7, 'import:old' FROM pg_user_balances
"""
_BALANCES: LiteralString = """
  INSERT INTO imported_objects (kind, object_id, owner_id, source, imported)
  SELECT 'balance', user_id, user_id, 'old', jsonb_build_object('user_id', user_id, 'balance_minor', balance_minor,
                                                               'explained_minor', balance_minor - 7)
    FROM pg_user_balances
"""
_GONE: tuple[LiteralString, ...] = (
    "DELETE FROM pg_webhook_inbox",
    "DELETE FROM redeliveries",
    "DELETE FROM pg_outbox",
    "DELETE FROM quarantined_events",
    "DELETE FROM sink_offsets",
)


def take_over(connection: Connection) -> None:
    """Turns everything that was applied so far into imported rows; each user had 7 satang before."""
    with connection.transaction():
        connection.execute("UPDATE pg_user_balance_entries SET event_id = 'import:old'")
        connection.execute("UPDATE pg_user_balances SET balance_minor = balance_minor + 7")
        connection.execute(_OPENING)
        connection.execute(_BALANCES)
        for kind, table, key, owner in _TABLES:
            connection.execute(
                "INSERT INTO imported_objects (kind, object_id, owner_id, source, imported)"
                f" SELECT '{kind}', {key}, {owner}, 'old', to_jsonb(t) FROM {table} t"
            )
        for statement in _GONE:
            connection.execute(statement)
