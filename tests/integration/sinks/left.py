"""What a run leaves in the tables, without the moments that each run makes for itself."""

from typing import Any, LiteralString

from tests.integration.sinks.conftest import Road

LEFT: dict[str, LiteralString] = {
    "inbox": "SELECT event_id, event_type, processed_at IS NULL, parked_reason, object_id, version, partition,"
    " arrival_seq, source_offset, verdict, reason FROM pg_webhook_inbox ORDER BY partition, arrival_seq",
    "redeliveries": "SELECT event_id, source_partition, source_offset FROM redeliveries ORDER BY 1, 2, 3",
    "deposits": "SELECT pg_deposit_id, pg_version, status, amount_received_minor, credited_user_at IS NOT NULL,"
    " reversed_at IS NOT NULL FROM pg_deposits ORDER BY 1",
    "flags": "SELECT claim_id, pg_deposit_id, observed_deposit_version FROM pg_deposit_overpayment_flags ORDER BY 1",
    "withdrawals": "SELECT pg_withdrawal_id, pg_version, status, amount_total_minor, fee_total_minor,"
    " total_locked_minor, filled_minor, remaining_minor, refunded_minor, fee_recognized_minor, settled_splits,"
    " max_splits, our_ref, replacement_withdrawal_id, closed_at IS NOT NULL, close_enqueued_at IS NOT NULL,"
    " refund_enqueued_at IS NOT NULL, user_lock_released_at IS NOT NULL FROM pg_withdrawals ORDER BY 1",
    "fills": "SELECT leg_ref, pg_withdrawal_id, sequence, amount_minor, fee_recognized_minor, settled_at,"
    " auto_confirm_at, balance_transaction_id, reversed_at FROM pg_withdrawal_fills ORDER BY 1",
    "reversals": "SELECT leg_ref, pg_withdrawal_id, reason_code, reverses_balance_transaction_id,"
    " reversal_balance_transaction_id, reversed_at, replacement_withdrawal_id, amount_minor, status_snapshot,"
    " effect_enqueued_at IS NOT NULL FROM pg_withdrawal_fill_reversals ORDER BY 1",
    "transactions": "SELECT btxn_id, type, direction, amount_minor, bucket_from, bucket_to, source_id, created_at,"
    " merchant_id, balance_after FROM pg_balance_txns ORDER BY 1",
    "balances": "SELECT user_id, balance_minor FROM pg_user_balances ORDER BY 1",
    "outbox": "SELECT partition, seq, aggregatetype, aggregateid, type, topic, payload, dedupe_key, causation_id,"
    " version FROM pg_outbox ORDER BY partition, seq",
    "quarantined": "SELECT event_id, object_id, reason, source_partition, source_offset, raw, state"
    " FROM quarantined_events ORDER BY source_partition, source_offset",
    "positions": "SELECT partition, next_offset, next_outbox_seq, next_arrival_seq FROM sink_offsets ORDER BY 1",
}


def left(road: Road) -> dict[str, list[tuple[Any, ...]]]:
    """Every row, by table."""
    return {name: road.rows(statement) for name, statement in LEFT.items()}
