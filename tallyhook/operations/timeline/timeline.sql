-- withdrawal: the order's row.
SELECT pg_withdrawal_id, pg_version, status, amount_total_minor, fee_total_minor, total_locked_minor, filled_minor,
       remaining_minor, refunded_minor, fee_recognized_minor, settled_splits, our_ref, replacement_withdrawal_id,
       closed_at, refund_enqueued_at, user_lock_released_at
  FROM {schema}.pg_withdrawals WHERE pg_withdrawal_id = %(object_id)s;

-- fills: its chunks, the first ones in time.
SELECT leg_ref, sequence, amount_minor, fee_recognized_minor, settled_at, auto_confirm_at, balance_transaction_id,
       reversed_at
  FROM {schema}.pg_withdrawal_fills WHERE pg_withdrawal_id = %(object_id)s
 ORDER BY settled_at NULLS LAST, sequence NULLS LAST, leg_ref LIMIT %(limit)s;

-- facts_total: how many chunks and reversals there are.
SELECT (SELECT count(*) FROM {schema}.pg_withdrawal_fills WHERE pg_withdrawal_id = %(object_id)s),
       (SELECT count(*) FROM {schema}.pg_withdrawal_fill_reversals WHERE pg_withdrawal_id = %(object_id)s);

-- reversals: its chunks that were taken back.
SELECT leg_ref, reason_code, amount_minor, reversed_at, status_snapshot, reverses_balance_transaction_id,
       reversal_balance_transaction_id, replacement_withdrawal_id, effect_enqueued_at
  FROM {schema}.pg_withdrawal_fill_reversals WHERE pg_withdrawal_id = %(object_id)s
 ORDER BY reversed_at, leg_ref LIMIT %(limit)s;

-- deposit: the order's row.
SELECT pg_deposit_id, pg_version, status, is_terminal, late_slip_accepted_until, ordered_amount_minor,
       transferred_amount_minor, amount_received_minor, fee_total_minor, credited_amount_minor, our_order_id,
       our_user_id, credited_user_at, reversed_at
  FROM {schema}.pg_deposits WHERE pg_deposit_id = %(object_id)s;

-- entries: its credit and its debit.
SELECT entry_key, user_id, amount_minor, event_id, created_at
  FROM {schema}.pg_user_balance_entries WHERE entry_key = ANY(%(entry_keys)s) ORDER BY created_at, entry_key;

-- flags: its overpayments.
SELECT claim_id, observed_deposit_version, cause, amount_minor, slip_received_at, expected_response_at
  FROM {schema}.pg_deposit_overpayment_flags WHERE pg_deposit_id = %(object_id)s
 ORDER BY slip_received_at, claim_id LIMIT %(limit)s;

-- transaction: one movement of the gateway's ledger.
SELECT btxn_id, type, direction, amount_minor, bucket_from, bucket_to, source_id, created_at
  FROM {schema}.pg_balance_txns WHERE btxn_id = %(object_id)s;

-- transactions_from: movements that name the object as their source.
SELECT btxn_id, type, direction, amount_minor, bucket_from, bucket_to, source_id, created_at
  FROM {schema}.pg_balance_txns WHERE source_id = %(object_id)s ORDER BY created_at, btxn_id LIMIT %(limit)s;

-- newest: the event that brought the row to its version.
SELECT event_type, event_raw
  FROM {schema}.pg_webhook_inbox
 WHERE object_id = %(object_id)s AND version = %(version)s AND verdict = 'advanced' AND processed_at IS NOT NULL
 ORDER BY arrival_seq LIMIT 1;

-- waiting: kinds of the object's events, how many of them wait, and how many were set aside.
SELECT ARRAY(SELECT DISTINCT object_kind FROM {schema}.pg_webhook_inbox WHERE object_id = %(object_id)s ORDER BY 1)
         AS kinds,
       (SELECT count(*) FROM {schema}.pg_webhook_inbox WHERE object_id = %(object_id)s AND processed_at IS NULL)
         AS parked,
       (SELECT count(*) FROM {schema}.quarantined_events WHERE object_id = %(object_id)s AND state = 'open')
         AS set_aside,
       EXISTS (SELECT FROM {schema}.quarantined_events WHERE object_id = %(object_id)s) AS was_set_aside;

-- by_order: deposits of one of the merchant's orders, those whose row is still to come among them.
SELECT pg_deposit_id, count(*) OVER () FROM (
  SELECT pg_deposit_id FROM {schema}.pg_deposits WHERE our_order_id = %(key)s
  UNION SELECT pg_deposit_id FROM {schema}.pg_deposit_correlations WHERE our_order_id = %(key)s
) AS found LEFT JOIN {schema}.pg_deposits USING (pg_deposit_id)
 ORDER BY updated_at DESC NULLS LAST, pg_deposit_id LIMIT %(limit)s;

-- by_user: deposits of one of the merchant's users.
SELECT pg_deposit_id, count(*) OVER ()
  FROM {schema}.pg_deposit_correlations LEFT JOIN {schema}.pg_deposits USING (pg_deposit_id)
 WHERE pg_deposit_correlations.our_user_id = %(key)s
 ORDER BY updated_at DESC NULLS LAST, pg_deposit_id LIMIT %(limit)s;

-- by_ticket: withdrawals with one of the merchant's own references.
SELECT pg_withdrawal_id, count(*) OVER ()
  FROM {schema}.pg_withdrawals WHERE our_ref = %(key)s
 ORDER BY updated_at DESC, pg_withdrawal_id LIMIT %(limit)s;
