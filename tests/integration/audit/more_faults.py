"""Faults that every other clause of what the audit claims is held to, one each."""

from typing import LiteralString

from tests.integration.audit.faults import CREDIT, DEBIT, PARTITION, Fault, fault

_POSITION: LiteralString = " WHERE topic = 'tallyhook.state-changes' AND partition = %(it)s"
_BROKEN_MONEY = (
    "SELECT i.event_id FROM pg_webhook_inbox i JOIN pg_deposits d ON d.pg_deposit_id = i.object_id"
    " WHERE d.status = 'settled' AND i.version = d.pg_version ORDER BY i.event_id LIMIT 1"
)
_CREDITED = "SELECT pg_deposit_id FROM pg_deposits WHERE status = 'settled' ORDER BY pg_deposit_id LIMIT 1"
# The first and the last effect of an object change places; through numbers that no row has, for two never share one.
_SWAP_OUT: LiteralString = "UPDATE pg_outbox SET seq = -1 - seq WHERE aggregateid = 'dep_review' AND %(it)s <> ''"
_SWAP_IN: LiteralString = (
    "UPDATE pg_outbox o SET seq = CASE -1 - o.seq WHEN e.low THEN e.high WHEN e.high THEN e.low ELSE -1 - o.seq END"
    " FROM (SELECT min(-1 - seq) AS low, max(-1 - seq) AS high FROM pg_outbox WHERE aggregateid = 'dep_review') e"
    " WHERE o.aggregateid = 'dep_review'"
)

NUMBERS: dict[str, Fault] = {
    "a position behind the topic's end": fault(
        PARTITION, "UPDATE sink_offsets SET next_offset = next_offset + 1000000" + _POSITION, red=("deliveries",)
    ),
    "arrival numbers that were set back": fault(
        PARTITION, "UPDATE sink_offsets SET next_arrival_seq = 1" + _POSITION, red=("arrival_numbers",)
    ),
    "outbox numbers that were set back": fault(
        PARTITION, "UPDATE sink_offsets SET next_outbox_seq = 1" + _POSITION, red=("outbox_numbers",)
    ),
    "a partition that the sink never had": fault(
        PARTITION, "DELETE FROM sink_offsets" + _POSITION, red=("arrival_numbers", "outbox_numbers")
    ),
    "an object in two partitions": fault(
        "SELECT 'dep_review'",
        "UPDATE pg_webhook_inbox i SET partition = s.partition, arrival_seq = s.next_arrival_seq FROM sink_offsets s"
        " WHERE i.event_id = 'evt_canceled' AND s.topic = 'tallyhook.state-changes' AND s.partition <> i.partition"
        " AND s.partition = (SELECT max(o.partition) FROM sink_offsets o WHERE o.topic = s.topic"
        " AND o.partition <> i.partition) AND %(it)s <> ''",
        red=("arrival_numbers", "outbox"),
    ),
}

DEPOSITS: dict[str, Fault] = {
    "a deposit without a row": fault(
        "SELECT 'dep_review'", "DELETE FROM pg_deposits WHERE pg_deposit_id = %(it)s", red=("aggregates", "outbox")
    ),
    "a deposit that nobody sent": fault(
        "SELECT 'dep_nobody'",
        "INSERT INTO pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)"
        " VALUES (%(it)s, 'ref_nobody', 'o', 'u')",
        "INSERT INTO pg_deposits (pg_deposit_id, pg_version, status, our_order_id, our_user_id)"
        " VALUES (%(it)s, 1, 'open', 'o', 'u')",
        red=("aggregates",),
    ),
    "another status": fault(
        "SELECT 'dep_review'",
        "UPDATE pg_deposits SET status = 'expired' WHERE pg_deposit_id = %(it)s",
        red=("aggregates",),
    ),
    "JSON null where nothing was sent": fault(
        "SELECT 'dep_review'",
        "UPDATE pg_deposits SET overpayment = 'null' WHERE pg_deposit_id = %(it)s",
        red=("aggregates",),
    ),
    "a deposit that counts as never credited": fault(
        _CREDITED,
        "UPDATE pg_deposits SET credited_user_at = NULL WHERE pg_deposit_id = %(it)s",
        red=("aggregates",),
    ),
    "another amount in a flag": fault(
        "SELECT 'clm_late'",
        "UPDATE pg_deposit_overpayment_flags SET amount_minor = 1 WHERE claim_id = %(it)s",
        red=("flags",),
    ),
    "other bytes in a flag": fault(
        "SELECT 'clm_late'",
        "UPDATE pg_deposit_overpayment_flags SET raw_flag = '{}' WHERE claim_id = %(it)s",
        red=("flags",),
    ),
    "a flag that nobody sent": fault(
        "SELECT 'clm_nobody'",
        "INSERT INTO pg_deposit_overpayment_flags SELECT %(it)s, pg_deposit_id, observed_deposit_version, cause,"
        " amount_minor, slip_received_at, status_snapshot, action_required_snapshot, expected_response_at, raw_flag"
        " FROM pg_deposit_overpayment_flags WHERE claim_id = 'clm_late'",
        red=("flags",),
    ),
    "an applied event that breaks the money rule": fault(
        _BROKEN_MONEY,
        "UPDATE pg_webhook_inbox SET event_raw = regexp_replace(event_raw, '\"credited_amount_minor\": ?[0-9]+',"
        " '\"credited_amount_minor\": 1') WHERE event_id = %(it)s",
        red=("verdicts", "deliveries", "aggregates", "ledger", "outbox"),
    ),
}

LEDGER: dict[str, Fault] = {
    "a credit that is gone": fault(
        CREDIT, "DELETE FROM pg_user_balance_entries WHERE entry_key = %(it)s", red=("ledger",)
    ),
    "a credit of another user": fault(
        CREDIT, "UPDATE pg_user_balance_entries SET user_id = 'somebody' WHERE entry_key = %(it)s", red=("ledger",)
    ),
    "a debit that does not repeat its credit": fault(
        DEBIT,
        "UPDATE pg_user_balances b SET balance_minor = balance_minor + 1 FROM pg_user_balance_entries e"
        " WHERE e.entry_key = %(it)s AND e.user_id = b.user_id",
        "UPDATE pg_user_balance_entries SET amount_minor = amount_minor + 1 WHERE entry_key = %(it)s",
        red=("ledger",),
    ),
    "a balance without entries": fault(
        "SELECT 'user_nobody'", "INSERT INTO pg_user_balances VALUES (%(it)s, 7)", red=("ledger",)
    ),
}

WITHDRAWALS: dict[str, Fault] = {
    "a withdrawal that nobody sent": fault(
        "SELECT 'wdr_nobody'",
        "INSERT INTO pg_withdrawals (pg_withdrawal_id, pg_version, status, amount_total_minor, remaining_minor)"
        " VALUES (%(it)s, 1, 'open', 5, 5)",
        red=("aggregates",),
    ),
    "a lowered version of a withdrawal": fault(
        "SELECT 'wdr_half'",
        "UPDATE pg_withdrawals SET pg_version = pg_version - 1 WHERE pg_withdrawal_id = %(it)s",
        red=("aggregates",),
    ),
    "another status of a withdrawal": fault(
        "SELECT 'wdr_half'",
        "UPDATE pg_withdrawals SET status = 'expired' WHERE pg_withdrawal_id = %(it)s",
        red=("aggregates",),
    ),
    "a refund that counts as never enqueued": fault(
        "SELECT 'wdr_half'",
        "UPDATE pg_withdrawals SET refund_enqueued_at = NULL WHERE pg_withdrawal_id = %(it)s",
        red=("aggregates",),
    ),
    "a lock that counts as never released": fault(
        "SELECT 'wdr_no'",
        "UPDATE pg_withdrawals SET user_lock_released_at = NULL WHERE pg_withdrawal_id = %(it)s",
        red=("aggregates",),
    ),
    "another amount of a chunk": fault(
        "SELECT 'leg_1'", "UPDATE pg_withdrawal_fills SET amount_minor = 7 WHERE leg_ref = %(it)s", red=("chunks",)
    ),
    "a reversal that nobody sent": fault(
        "SELECT 'leg_nobody'",
        "INSERT INTO pg_withdrawal_fill_reversals (leg_ref, pg_withdrawal_id, reason_code,"
        " reverses_balance_transaction_id, reversal_balance_transaction_id, reversed_at, amount_minor, status_snapshot)"
        " VALUES (%(it)s, 'wdr_odd', 'BANK_RECALL', 'btx_n', 'btx_n_back', now(), 5, 'open')",
        red=("chunks",),
    ),
    "another reason of a reversal": fault(
        "SELECT 'leg_3'",
        "UPDATE pg_withdrawal_fill_reversals SET reason_code = 'ACCOUNT_FROZEN' WHERE leg_ref = %(it)s",
        red=("chunks",),
    ),
    "a reversal that counts as never compensated": fault(
        "SELECT 'leg_3'",
        "UPDATE pg_withdrawal_fill_reversals SET effect_enqueued_at = NULL WHERE leg_ref = %(it)s",
        red=("chunks",),
    ),
    "a chunk and its reversal under different withdrawals": fault(
        "SELECT 'leg_3'",
        "INSERT INTO pg_withdrawal_fills (leg_ref, pg_withdrawal_id, amount_minor) VALUES (%(it)s, 'wdr_no', 30000)",
        red=("chunks",),
    ),
    "an event that waits and need not": fault(
        "SELECT 'evt_w_wait'",
        'UPDATE pg_webhook_inbox SET event_raw = replace(event_raw, \'"status": "partially_filled"\','
        ' \'"status": "partially_filled", "amount_total_minor": 9, "remaining_minor": 9\')'
        " WHERE event_id = %(it)s",
        red=("verdicts", "deliveries"),
    ),
    "another merchant of a balance transaction": fault(
        "SELECT 'btx_move'",
        "UPDATE pg_balance_txns SET merchant_id = 'mer_other' WHERE btxn_id = %(it)s",
        red=("transactions",),
    ),
}

OUTBOX: dict[str, Fault] = {
    "another version of an effect": fault(
        "SELECT 'evt_review:show_pending_review'",
        "UPDATE pg_outbox SET version = version + 1 WHERE dedupe_key = %(it)s",
        red=("outbox", "effects"),
    ),
    "another cause of an effect": fault(
        "SELECT 'evt_review:show_pending_review'",
        "UPDATE pg_outbox SET causation_id = 'evt_canceled' WHERE dedupe_key = %(it)s",
        red=("outbox", "effects"),
    ),
    "another key of an effect": fault(
        "SELECT 'evt_review:show_pending_review'",
        "UPDATE pg_outbox SET dedupe_key = dedupe_key || 'x' WHERE dedupe_key = %(it)s",
        red=("outbox", "effects"),
    ),
    "another object of an effect": fault(
        "SELECT 'evt_review:show_pending_review'",
        "UPDATE pg_outbox SET aggregateid = 'dep_odd' WHERE dedupe_key = %(it)s",
        red=("outbox", "effects"),
    ),
    "effects in another order": fault(
        "SELECT 'evt_review:show_pending_review'", _SWAP_OUT, _SWAP_IN, red=("outbox", "effects")
    ),
}

MORE_FAULTS = NUMBERS | DEPOSITS | LEDGER | WITHDRAWALS | OUTBOX
