"""What two schemas must agree on: every row, save the moments and numbers that each writer makes for itself."""

from typing import Any, LiteralString

from psycopg import sql
from psycopg.rows import dict_row

from tallyhook.postgres import Connection

Row = dict[str, Any]
Tables = dict[str, list[Row]]

WRITTEN = (
    "pg_deposit_overpayment_flags",
    "pg_withdrawal_fills",
    "pg_withdrawal_fill_reversals",
    "pg_withdrawals",
    "pg_balance_txns",
    "pg_webhook_inbox",
    "redeliveries",
    "pg_deposit_correlations",
    "pg_deposits",
    "pg_user_balances",
    "pg_user_balance_entries",
    "pg_outbox",
    "sink_offsets",
    "quarantined_events",
)
"""The tables that a writer fills, those that refer to others first."""

AGREED: dict[str, LiteralString] = {
    "inbox": """
      SELECT event_id, event_type, event_raw, received_at, processed_at IS NULL AS waits, parked_reason, object_id,
             object_kind, version, merchant_id, sequence, partition, arrival_seq, source_partition, source_offset,
             verdict, reason, key_id, origin
        FROM pg_webhook_inbox ORDER BY event_id""",
    "redeliveries": """
      SELECT event_id, source_partition, source_offset, received_at, verdict
        FROM redeliveries ORDER BY event_id, source_partition, source_offset""",
    "deposits": """
      SELECT pg_deposit_id, pg_version, status, is_terminal, late_slip_accepted_until, ordered_amount_minor,
             transferred_amount_minor, amount_received_minor, fee_total_minor, credited_amount_minor, fee_breakdown,
             overpayment, balance_transaction_id, clearing_available_at, our_order_id, our_user_id,
             credited_user_at IS NOT NULL AS credited,
             reversed_at IS NOT NULL AS reversed
        FROM pg_deposits ORDER BY pg_deposit_id""",
    "overpayment flags": """
      SELECT claim_id, pg_deposit_id, observed_deposit_version, cause, amount_minor, slip_received_at, status_snapshot,
             action_required_snapshot, expected_response_at, raw_flag
        FROM pg_deposit_overpayment_flags ORDER BY claim_id""",
    "withdrawals": """
      SELECT pg_withdrawal_id, pg_version, status, amount_total_minor, fee_total_minor, total_locked_minor,
             filled_minor, remaining_minor, refunded_minor, fee_recognized_minor, settled_splits, max_splits, our_ref,
             replacement_withdrawal_id,
             closed_at IS NOT NULL AS closed,
             close_enqueued_at IS NOT NULL AS close_enqueued,
             refund_enqueued_at IS NOT NULL AS refund_enqueued,
             user_lock_released_at IS NOT NULL AS lock_released
        FROM pg_withdrawals ORDER BY pg_withdrawal_id""",
    "fills": """
      SELECT leg_ref, pg_withdrawal_id, sequence, amount_minor, fee_recognized_minor, settled_at, auto_confirm_at,
             balance_transaction_id, reversed_at
        FROM pg_withdrawal_fills ORDER BY leg_ref""",
    "reversals": """
      SELECT leg_ref, pg_withdrawal_id, reason_code, reverses_balance_transaction_id, reversal_balance_transaction_id,
             reversed_at, replacement_withdrawal_id, amount_minor, status_snapshot,
             effect_enqueued_at IS NOT NULL AS effect_enqueued
        FROM pg_withdrawal_fill_reversals ORDER BY leg_ref""",
    "balance transactions": """
      SELECT btxn_id, type, direction, amount_minor, bucket_from, bucket_to, source_id, created_at, merchant_id,
             balance_after
        FROM pg_balance_txns ORDER BY btxn_id""",
    "balances": "SELECT user_id, balance_minor FROM pg_user_balances ORDER BY user_id",
    "balance entries": """
      SELECT entry_key, user_id, amount_minor, event_id FROM pg_user_balance_entries ORDER BY entry_key""",
    "effects in order, by object": """
      SELECT aggregateid, aggregatetype, type, topic, payload, dedupe_key, causation_id, version, partition, received_at
        FROM pg_outbox WHERE topic <> 'balance_entry' ORDER BY aggregateid, aggregatetype, seq""",
    "balance entries in order, by object": """
      SELECT aggregateid, aggregatetype, type, topic, payload, dedupe_key, causation_id, version, partition, received_at
        FROM pg_outbox WHERE topic = 'balance_entry' ORDER BY aggregateid, aggregatetype, seq""",
    "quarantined": """
      SELECT event_id, object_id, reason, stage, raw, source_partition, source_offset, state
        FROM quarantined_events ORDER BY event_id, source_partition, source_offset""",
}


def make_clearable(connection: Connection, schema: str) -> None:
    """Lets the append-only flags of this schema be deleted: DELETE empties small tables far quicker than TRUNCATE."""
    connection.execute(
        sql.SQL("ALTER TABLE {} DISABLE TRIGGER pg_deposit_overpayment_flags_immutable").format(
            sql.Identifier(schema, "pg_deposit_overpayment_flags")
        )
    )


def clear(connection: Connection, schema: str) -> None:
    """Empties every table that a writer fills."""
    with connection.transaction(), connection.pipeline():
        for table in WRITTEN:
            connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(schema, table)))


def read_tables(connection: Connection, schema: str) -> Tables:
    """Every row that must agree, in an order that both writers share."""
    with connection.transaction():
        connection.execute(sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(schema)))
        with connection.pipeline():
            cursors = {
                name: connection.cursor(row_factory=dict_row).execute(statement) for name, statement in AGREED.items()
            }
        return {name: cursor.fetchall() for name, cursor in cursors.items()}


def differences(expected: Tables, actual: Tables) -> list[str]:
    """What the handler (expected) and the sink (actual) do not share, for a person; empty when they agree."""
    found = []
    for name, rows in expected.items():
        found += _differences(name, rows, actual[name])
    return found


def _differences(name: str, rows: list[Row], others: list[Row]) -> list[str]:
    if rows == others:
        return []
    lacking, added = [row for row in rows if row not in others], [row for row in others if row not in rows]
    if not lacking and not added:
        return [f"{name}: another order or number: handler {rows}, sink {others}"]
    if len(rows) == len(others):
        pairs = [(row, other) for row, other in zip(rows, others, strict=True) if row != other]
        return [f"{name}: {_first_value(row)}: {_changed(row, other)}" for row, other in pairs]
    return [f"{name}: only the handler has {row}" for row in lacking] + [
        f"{name}: only the sink has {row}" for row in added
    ]


def _first_value(row: Row) -> object:
    return next(iter(row.values()))


def _changed(row: Row, other: Row) -> str:
    return ", ".join(
        f"{column} is {row[column]!r} by the handler and {other[column]!r} by the sink"
        for column in row
        if row[column] != other[column]
    )
