-- deposits: the rows of some ids; JSON as text, so that numbers of any size stay what they are.
SELECT pg_deposit_id, pg_version, updated_at, status, is_terminal, late_slip_accepted_until, ordered_amount_minor,
       transferred_amount_minor, amount_received_minor, fee_total_minor, credited_amount_minor, fee_breakdown::text,
       overpayment::text, balance_transaction_id, clearing_available_at
  FROM {schema}.pg_deposits WHERE pg_deposit_id = ANY(%s);

-- withdrawals: the rows of some ids.
SELECT pg_withdrawal_id, pg_version, updated_at, status, amount_total_minor, fee_total_minor, total_locked_minor,
       filled_minor, remaining_minor, refunded_minor, fee_recognized_minor, settled_splits, max_splits, our_ref
  FROM {schema}.pg_withdrawals WHERE pg_withdrawal_id = ANY(%s);

-- transactions: the rows of some ids.
SELECT btxn_id, type, direction, amount_minor, bucket_from, bucket_to, source_id, created_at
  FROM {schema}.pg_balance_txns WHERE btxn_id = ANY(%s);

-- count_deposits: for the progress bar.
SELECT count(*) FROM {schema}.pg_deposits;

-- count_withdrawals: for the progress bar.
SELECT count(*) FROM {schema}.pg_withdrawals;

-- count_transactions: for the progress bar.
SELECT count(*) FROM {schema}.pg_balance_txns WHERE merchant_id = %s;

-- deposits_after: ids in order, a page.
SELECT pg_deposit_id FROM {schema}.pg_deposits WHERE pg_deposit_id > %(after)s ORDER BY pg_deposit_id LIMIT %(limit)s;

-- withdrawals_after: ids in order, a page.
SELECT pg_withdrawal_id FROM {schema}.pg_withdrawals
 WHERE pg_withdrawal_id > %(after)s ORDER BY pg_withdrawal_id LIMIT %(limit)s;

-- transactions_after: a merchant's ids in order, a page.
SELECT btxn_id FROM {schema}.pg_balance_txns
 WHERE btxn_id > %(after)s AND merchant_id = %(merchant)s ORDER BY btxn_id LIMIT %(limit)s;

-- merchant_of: whose object it is, while one of its events is in the inbox.
SELECT merchant_id FROM {schema}.pg_webhook_inbox WHERE object_id = %s LIMIT 1;

-- applied: the newest events of an object that are in the inbox, newest first.
SELECT event_id, version, verdict, reason, sequence
  FROM {schema}.pg_webhook_inbox WHERE object_id = %(object_id)s ORDER BY arrival_seq DESC LIMIT %(limit)s;

-- set_aside: the newest events of an object that were set aside and are not applied, newest first.
SELECT event_id, headers ->> 'ce_version', 'quarantined', reason, headers ->> 'ce_sequence'
  FROM {schema}.quarantined_events
 WHERE object_id = %(object_id)s AND state <> 'redriven' ORDER BY id DESC LIMIT %(limit)s;

-- sums: what every bucket of a merchant holds by the movements that are recorded (satang).
SELECT bucket, sum(amount)::text
  FROM (SELECT bucket_to AS bucket, amount_minor::numeric AS amount
          FROM {schema}.pg_balance_txns WHERE merchant_id = %(merchant)s AND bucket_to IS NOT NULL
        UNION ALL
        SELECT bucket_from, -amount_minor::numeric
          FROM {schema}.pg_balance_txns WHERE merchant_id = %(merchant)s AND bucket_from IS NOT NULL) AS moved
 GROUP BY bucket;

-- movements: a merchant's movements in order, a page behind a moment and an id.
SELECT btxn_id, created_at, amount_minor, bucket_from, bucket_to, balance_after::text
  FROM {schema}.pg_balance_txns
 WHERE merchant_id = %(merchant)s AND (created_at, btxn_id) > (%(created_at)s::timestamptz, %(btxn_id)s)
 ORDER BY created_at, btxn_id
 LIMIT %(limit)s;
