"""Imported rows are held to what was imported: a changed one is named, and so is one that nobody imported."""

from collections.abc import Iterator
from typing import LiteralString

import pytest
from psycopg import sql

from sinks.migrations import upgrade
from tallyhook.operations.audit.findings import CheckName
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings, Installation
from tests.integration.audit.importing import take_over
from tests.integration.audit.objects import audit_objects, nothing_pruned, told

OLD_ROWS: tuple[LiteralString, ...] = (
    """INSERT INTO pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)
       VALUES ('dep', 'ref', 'ord', 'usr')""",
    """INSERT INTO pg_deposits (pg_deposit_id, pg_version, status, ordered_amount_minor, transferred_amount_minor,
         amount_received_minor, fee_total_minor, credited_amount_minor, clearing_available_at, our_order_id,
         our_user_id, credited_user_at, reversed_at)
       VALUES ('dep', 5, 'reversed', 500, 450, 450, 7, 443, now(), 'ord', 'usr', now(), now())""",
    "INSERT INTO pg_user_balances VALUES ('usr', 0)",
    """INSERT INTO pg_user_balance_entries (entry_key, user_id, amount_minor, event_id)
       VALUES ('deposit:dep:credit', 'usr', 450, ''), ('deposit:dep:debit', 'usr', -450, '')""",
    """INSERT INTO pg_withdrawals (pg_withdrawal_id, pg_version, status, amount_total_minor, remaining_minor, closed_at,
         close_enqueued_at)
       VALUES ('wdr', 8, 'settled', 1000, 0, now(), now())""",
    """INSERT INTO pg_withdrawal_fills (leg_ref, pg_withdrawal_id, amount_minor, settled_at, reversed_at)
       VALUES ('leg', 'wdr', 1000, now(), '2026-03-01T09:00:00.123456Z')""",
    """INSERT INTO pg_withdrawal_fill_reversals (leg_ref, pg_withdrawal_id, reason_code, reversed_at, amount_minor,
         reverses_balance_transaction_id, reversal_balance_transaction_id, status_snapshot, effect_enqueued_at)
       VALUES ('leg', 'wdr', 'BANK_RECALL', '2026-03-01T09:00:00.123456Z', 1000, 'btx', 'btx_back', 'open', now())""",
    """INSERT INTO pg_balance_txns (btxn_id, type, direction, amount_minor, created_at, balance_after)
       VALUES ('btx', 'fee', 'debit', 7, now(), '{"available_minor": 1.50}')""",
)

FAULTS: dict[str, tuple[LiteralString, CheckName]] = {
    "a deposit's version": ("UPDATE pg_deposits SET pg_version = 4", "aggregates"),
    "a deposit's moment": ("UPDATE pg_deposits SET clearing_available_at = '2026-01-01Z'", "aggregates"),
    "a deposit that is gone": ("DELETE FROM pg_deposits", "aggregates"),
    "a credit that is gone": (
        "DELETE FROM pg_user_balance_entries WHERE entry_key = 'deposit:dep:credit'",
        "ledger",
    ),
    "a debit of another amount": (
        "UPDATE pg_user_balance_entries SET amount_minor = -451 WHERE entry_key = 'deposit:dep:debit'",
        "ledger",
    ),
    "a credit of another import": (
        "UPDATE pg_user_balance_entries SET event_id = 'import:other' WHERE entry_key = 'deposit:dep:credit'",
        "ledger",
    ),
    "an opening balance that nobody imported": ("DELETE FROM imported_objects WHERE kind = 'balance'", "ledger"),
    "an opening balance of another user": (
        "UPDATE pg_user_balance_entries SET user_id = 'other' WHERE entry_key = 'import:usr:opening'",
        "ledger",
    ),
    "an opening balance of another amount": (
        "UPDATE pg_user_balance_entries SET amount_minor = 8 WHERE entry_key = 'import:usr:opening'",
        "ledger",
    ),
    "a withdrawal's total": ("UPDATE pg_withdrawals SET filled_minor = 1", "aggregates"),
    "a withdrawal's mark": ("UPDATE pg_withdrawals SET close_enqueued_at = NULL", "aggregates"),
    "a withdrawal that nobody imported": ("DELETE FROM imported_objects WHERE kind = 'withdrawal'", "aggregates"),
    "a chunk": ("UPDATE pg_withdrawal_fills SET amount_minor = 999", "chunks"),
    "a reversal": ("UPDATE pg_withdrawal_fill_reversals SET replacement_withdrawal_id = 'x'", "chunks"),
    "a reversal that nobody imported": ("DELETE FROM imported_objects WHERE kind = 'reversal'", "chunks"),
    "a balance transaction": ("UPDATE pg_balance_txns SET balance_after = NULL", "transactions"),
    "a balance transaction that is gone": ("DELETE FROM pg_balance_txns", "transactions"),
}


@pytest.fixture
def imported(database_settings: DatabaseSettings, installation: Installation) -> Iterator[Connection]:
    """A schema with imported rows of every kind, within a transaction that is rolled back."""
    upgrade(database_settings, installation)
    with connect(database_settings, "test") as connection, connection.transaction(force_rollback=True):
        name = sql.Identifier(installation.schema_name)
        connection.execute(sql.SQL("SET LOCAL search_path TO {}").format(name))
        connection.execute("SET LOCAL session_replication_role = replica")
        for statement in OLD_ROWS:
            connection.execute(statement)
        take_over(connection)
        yield connection


def test_imported_rows_are_clean_and_each_fault_is_named(imported: Connection, installation: Installation) -> None:
    """As they were imported nothing is red; a fault is red in its check, and in no other save the balances' sum."""
    assert told(audit_objects(imported, installation, nothing_pruned())) == []
    for name, (statement, red) in FAULTS.items():
        with imported.transaction(force_rollback=True):
            assert imported.execute(statement).rowcount == 1, name
            checks = audit_objects(imported, installation, nothing_pruned())
            assert {check.name for check in checks.values() if check.found} == {red}, (name, told(checks))
