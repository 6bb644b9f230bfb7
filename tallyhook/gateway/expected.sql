-- What stands in the database, read to be compared with the expected end of a simulated world.

-- deposits: the mirror's rows.
SELECT pg_deposit_id, pg_version, status, our_order_id, our_user_id, ordered_amount_minor, transferred_amount_minor,
       amount_received_minor, fee_total_minor, credited_amount_minor, overpayment ->> 'claim_id' AS projected_claim,
       credited_user_at IS NOT NULL AS credited, reversed_at IS NOT NULL AS reversed
  FROM {schema}.pg_deposits WHERE pg_deposit_id = ANY (%(keys)s);

-- flags: overpayment flags by deposit.
SELECT pg_deposit_id, claim_id, cause, amount_minor
  FROM {schema}.pg_deposit_overpayment_flags WHERE pg_deposit_id = ANY (%(keys)s);

-- entries: credits and debits by their keys.
SELECT entry_key, user_id, amount_minor FROM {schema}.pg_user_balance_entries WHERE entry_key = ANY (%(keys)s);

-- balances: sums by user.
SELECT user_id, balance_minor FROM {schema}.pg_user_balances WHERE user_id = ANY (%(keys)s);

-- withdrawals: the mirror's rows.
SELECT pg_withdrawal_id, pg_version, status, our_ref, amount_total_minor, fee_total_minor, total_locked_minor,
       max_splits, filled_minor, remaining_minor, refunded_minor, fee_recognized_minor, settled_splits,
       replacement_withdrawal_id, closed_at IS NOT NULL AS closed, refund_enqueued_at IS NOT NULL AS refund_enqueued,
       user_lock_released_at IS NOT NULL AS user_lock_released
  FROM {schema}.pg_withdrawals WHERE pg_withdrawal_id = ANY (%(keys)s);

-- fills: chunks by withdrawal.
SELECT pg_withdrawal_id, leg_ref, amount_minor, fee_recognized_minor, balance_transaction_id,
       reversed_at IS NOT NULL AS reversed
  FROM {schema}.pg_withdrawal_fills WHERE pg_withdrawal_id = ANY (%(keys)s);

-- tombstones: reversals by withdrawal.
SELECT pg_withdrawal_id, leg_ref, amount_minor, reason_code, reverses_balance_transaction_id,
       reversal_balance_transaction_id, replacement_withdrawal_id
  FROM {schema}.pg_withdrawal_fill_reversals WHERE pg_withdrawal_id = ANY (%(keys)s);

-- transactions: movements of the wallet by their ids.
SELECT btxn_id, type, direction, amount_minor, bucket_from, bucket_to, source_id
  FROM {schema}.pg_balance_txns WHERE btxn_id = ANY (%(keys)s);

-- effects: what left or will leave, by object.
SELECT aggregateid, dedupe_key, topic, payload FROM {schema}.pg_outbox WHERE aggregateid = ANY (%(keys)s);

-- inbox: which events are known, by their ids.
SELECT event_id, parked_reason FROM {schema}.pg_webhook_inbox WHERE event_id = ANY (%(keys)s);

-- set_aside: why an event is not in the inbox, the newest reason.
SELECT DISTINCT ON (event_id) event_id, reason
  FROM {schema}.quarantined_events WHERE event_id = ANY (%(keys)s) ORDER BY event_id, id DESC;
