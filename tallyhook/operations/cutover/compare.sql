-- rows_deposit: every row, in order of the key's bytes.
SELECT pg_deposit_id, to_jsonb(t) FROM {schema}.pg_deposits t ORDER BY pg_deposit_id COLLATE "C";

-- some_deposit: the rows of some keys.
SELECT pg_deposit_id, to_jsonb(t) FROM {schema}.pg_deposits t WHERE pg_deposit_id = ANY(%s);

-- rows_overpayment_flag: every row, in order of the key's bytes.
SELECT claim_id, to_jsonb(t) FROM {schema}.pg_deposit_overpayment_flags t ORDER BY claim_id COLLATE "C";

-- some_overpayment_flag: the rows of some keys.
SELECT claim_id, to_jsonb(t) FROM {schema}.pg_deposit_overpayment_flags t WHERE claim_id = ANY(%s);

-- rows_withdrawal: every row, in order of the key's bytes.
SELECT pg_withdrawal_id, to_jsonb(t) FROM {schema}.pg_withdrawals t ORDER BY pg_withdrawal_id COLLATE "C";

-- some_withdrawal: the rows of some keys.
SELECT pg_withdrawal_id, to_jsonb(t) FROM {schema}.pg_withdrawals t WHERE pg_withdrawal_id = ANY(%s);

-- rows_fill: every row, in order of the key's bytes.
SELECT leg_ref, to_jsonb(t) FROM {schema}.pg_withdrawal_fills t ORDER BY leg_ref COLLATE "C";

-- some_fill: the rows of some keys.
SELECT leg_ref, to_jsonb(t) FROM {schema}.pg_withdrawal_fills t WHERE leg_ref = ANY(%s);

-- rows_reversal: every row, in order of the key's bytes.
SELECT leg_ref, to_jsonb(t) FROM {schema}.pg_withdrawal_fill_reversals t ORDER BY leg_ref COLLATE "C";

-- some_reversal: the rows of some keys.
SELECT leg_ref, to_jsonb(t) FROM {schema}.pg_withdrawal_fill_reversals t WHERE leg_ref = ANY(%s);

-- rows_transaction: every row, in order of the key's bytes.
SELECT btxn_id, to_jsonb(t) FROM {schema}.pg_balance_txns t ORDER BY btxn_id COLLATE "C";

-- some_transaction: the rows of some keys.
SELECT btxn_id, to_jsonb(t) FROM {schema}.pg_balance_txns t WHERE btxn_id = ANY(%s);

-- rows_balance: every row, in order of the key's bytes.
SELECT user_id, to_jsonb(t) FROM {schema}.pg_user_balances t ORDER BY user_id COLLATE "C";

-- some_balance: the rows of some keys.
SELECT user_id, to_jsonb(t) FROM {schema}.pg_user_balances t WHERE user_id = ANY(%s);

-- led_object: what made the rows of an object: its import, then its newest events, newest first.
(SELECT event_id, version, verdict, reason, sequence
   FROM {schema}.pg_webhook_inbox WHERE object_id = %(id)s ORDER BY arrival_seq DESC LIMIT %(limit)s)
UNION ALL
(SELECT event_id, NULL, 'quarantined', reason, NULL
   FROM {schema}.quarantined_events WHERE object_id = %(id)s AND state <> 'redriven' ORDER BY id DESC LIMIT %(limit)s)
UNION ALL
SELECT DISTINCT 'import:' || source, NULL::bigint, 'imported', NULL, NULL::bigint
  FROM {schema}.imported_objects WHERE owner_id = %(id)s AND kind <> 'balance';

-- led_user: the newest entries of a user's balance, newest first.
SELECT event_id, NULL::bigint, entry_key || ' ' || amount_minor, NULL, NULL::bigint
  FROM {schema}.pg_user_balance_entries WHERE user_id = %(id)s ORDER BY created_at DESC, entry_key LIMIT %(limit)s;
