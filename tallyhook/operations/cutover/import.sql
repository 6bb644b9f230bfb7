-- lock: one import at a time, until the session ends.
SELECT pg_advisory_lock(%s);

-- patience: bounds the waits for locks of this session.
SELECT set_config('lock_timeout', %s, false);

-- running_sinks: sessions of sinks that own a partition now.
SELECT count(DISTINCT a.pid)
  FROM {schema}.sink_offsets s
  JOIN pg_stat_activity a ON a.pid = s.owner_pid
 WHERE a.application_name = 'tallyhook-sink';

-- create_staged: every row of the source, checked and not yet written; gone with the session.
CREATE TEMPORARY TABLE staged (
  kind      text NOT NULL,
  object_id text COLLATE "C" NOT NULL,
  owner_id  text COLLATE "C" NOT NULL,
  place     text NOT NULL,
  content   jsonb NOT NULL
);

-- copy_staged: rows on their way into it.
COPY staged (kind, object_id, owner_id, place, content) FROM STDIN;

-- index_staged: they are looked for by owner.
CREATE INDEX staged_owner_idx ON staged (owner_id, kind);

-- index_staged_object: and by their own key.
CREATE INDEX staged_object_idx ON staged (kind, object_id);

-- analyze_staged: the planner has never seen it.
ANALYZE staged;

-- find_repeated: keys that the source has twice.
SELECT kind, min(place), object_id, 'it is there ' || count(*) || ' times, also at ' || max(place)
  FROM staged GROUP BY kind, object_id HAVING count(*) > 1 ORDER BY 1, 3 LIMIT %(limit)s;

-- find_orphans: rows of a deposit or withdrawal that is neither here nor in the source.
SELECT s.kind, s.place, s.object_id, 'its ' || o.kind || ' ' || s.owner_id || ' is not known'
  FROM staged s
  JOIN (VALUES ('overpayment_flag', 'deposit'), ('fill', 'withdrawal'), ('reversal', 'withdrawal')) AS o(fact, kind)
    ON o.fact = s.kind
 WHERE NOT EXISTS (SELECT FROM staged t WHERE t.kind = o.kind AND t.object_id = s.owner_id)
   AND NOT EXISTS (SELECT FROM {schema}.pg_deposits d WHERE o.kind = 'deposit' AND d.pg_deposit_id = s.owner_id)
   AND NOT EXISTS (SELECT FROM {schema}.pg_withdrawals w
                    WHERE o.kind = 'withdrawal' AND w.pg_withdrawal_id = s.owner_id)
 ORDER BY 1, 3 LIMIT %(limit)s;

-- find_unowned: deposits without a merchant_reference of which no correlation is known either.
SELECT s.kind, s.place, s.object_id, 'merchant_reference is not given and no correlation is known'
  FROM staged s
 WHERE s.kind = 'deposit' AND s.content ->> 'merchant_reference' IS NULL
   AND NOT EXISTS (SELECT FROM {schema}.pg_deposit_correlations c WHERE c.pg_deposit_id = s.object_id)
 ORDER BY 3 LIMIT %(limit)s;

-- find_shared_references: a merchant_reference that names two deposits, in the source or here.
WITH named AS (
  SELECT DISTINCT ON (object_id) kind, place, object_id, content ->> 'merchant_reference' AS reference
    FROM staged WHERE kind IN ('deposit', 'correlation') AND content ->> 'merchant_reference' IS NOT NULL
), shared AS (
  SELECT reference, min(object_id) AS lowest, max(object_id) AS highest
    FROM named GROUP BY reference HAVING min(object_id) <> max(object_id)
)
SELECT kind, place, object_id, 'merchant_reference ' || reference || ' belongs to ' || other
  FROM (SELECT n.*, CASE WHEN n.object_id = s.lowest THEN s.highest ELSE s.lowest END AS other
          FROM named n JOIN shared s USING (reference)
        UNION ALL
        SELECT n.*, c.pg_deposit_id
          FROM named n
          JOIN {schema}.pg_deposit_correlations c
            ON c.merchant_reference = n.reference AND c.pg_deposit_id <> n.object_id) AS found
 ORDER BY 3 LIMIT %(limit)s;

-- find_unpriced: reversals without an amount whose chunk is not known either.
SELECT s.kind, s.place, s.object_id, 'amount_minor is not given and no fill of the chunk is known'
  FROM staged s
 WHERE s.kind = 'reversal' AND s.content ->> 'amount_minor' IS NULL
   AND NOT EXISTS (SELECT FROM staged f WHERE f.kind = 'fill' AND f.object_id = s.object_id)
   AND NOT EXISTS (SELECT FROM {schema}.pg_withdrawal_fills f WHERE f.leg_ref = s.object_id)
 ORDER BY 3 LIMIT %(limit)s;

-- find_shared_transactions: a balance transaction that two reversals name, in the source or here.
WITH named AS (
  SELECT place, object_id, transaction_id
    FROM staged, LATERAL (VALUES (content ->> 'reverses_balance_transaction_id'),
                                 (content ->> 'reversal_balance_transaction_id')) AS n(transaction_id)
   WHERE kind = 'reversal'
), twice AS (
  SELECT transaction_id FROM named GROUP BY transaction_id HAVING count(DISTINCT object_id) > 1
)
SELECT 'reversal', place, object_id, 'balance transaction ' || transaction_id || ' belongs to another reversal too'
  FROM named n
 WHERE transaction_id IN (SELECT transaction_id FROM twice)
    OR EXISTS (SELECT FROM {schema}.pg_withdrawal_fill_reversals r
                WHERE r.reverses_balance_transaction_id = n.transaction_id AND r.leg_ref <> n.object_id)
    OR EXISTS (SELECT FROM {schema}.pg_withdrawal_fill_reversals r
                WHERE r.reversal_balance_transaction_id = n.transaction_id AND r.leg_ref <> n.object_id)
 ORDER BY 3 LIMIT %(limit)s;

-- count_staged: for the progress bar.
SELECT kind, count(*) FROM staged GROUP BY kind;

-- next_owners: whose rows come next.
SELECT DISTINCT owner_id FROM staged
 WHERE kind = ANY(%(kinds)s) AND owner_id > %(after)s ORDER BY owner_id LIMIT %(limit)s;

-- staged_of: the rows of some owners.
SELECT kind, object_id, place, content FROM staged
 WHERE owner_id = ANY(%(owners)s) AND kind = ANY(%(kinds)s) ORDER BY kind, object_id;

-- hold_sinks: no batch of a sink runs beside the transaction; one that had looked before would decide on what was.
LOCK TABLE {schema}.sink_offsets IN EXCLUSIVE MODE;

-- imported: what was taken over before.
SELECT object_id, imported FROM {schema}.imported_objects WHERE kind = %(kind)s AND object_id = ANY(%(ids)s);

-- here_deposit: rows that are here.
SELECT pg_deposit_id, to_jsonb(t) FROM {schema}.pg_deposits t WHERE pg_deposit_id = ANY(%(ids)s);

-- here_overpayment_flag: rows that are here.
SELECT claim_id, to_jsonb(t) FROM {schema}.pg_deposit_overpayment_flags t WHERE claim_id = ANY(%(ids)s);

-- here_correlation: rows that are here.
SELECT pg_deposit_id, to_jsonb(t) FROM {schema}.pg_deposit_correlations t WHERE pg_deposit_id = ANY(%(ids)s);

-- here_withdrawal: rows that are here.
SELECT pg_withdrawal_id, to_jsonb(t) FROM {schema}.pg_withdrawals t WHERE pg_withdrawal_id = ANY(%(ids)s);

-- here_fill: rows that are here.
SELECT leg_ref, to_jsonb(t) FROM {schema}.pg_withdrawal_fills t WHERE leg_ref = ANY(%(ids)s);

-- here_reversal: rows that are here.
SELECT leg_ref, to_jsonb(t) FROM {schema}.pg_withdrawal_fill_reversals t WHERE leg_ref = ANY(%(ids)s);

-- here_transaction: rows that are here.
SELECT btxn_id, to_jsonb(t) FROM {schema}.pg_balance_txns t WHERE btxn_id = ANY(%(ids)s);

-- moved_otherwise: users whose balance the sink itself has moved.
SELECT DISTINCT user_id FROM {schema}.pg_user_balance_entries
 WHERE user_id = ANY(%(ids)s) AND event_id NOT LIKE 'import:%%';

-- write_correlation: those of deposits that are written in the same transaction, or that stand alone.
INSERT INTO {schema}.pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)
SELECT object_id, content ->> 'merchant_reference', content ->> 'our_order_id', content ->> 'our_user_id'
  FROM staged
 WHERE kind = %(kind)s AND object_id = ANY(%(ids)s) AND content ->> 'merchant_reference' IS NOT NULL
 ORDER BY object_id
ON CONFLICT (pg_deposit_id) DO NOTHING;

-- write_deposit: new rows, noted as imported; the count must be theirs.
WITH made AS (
  INSERT INTO {schema}.pg_deposits (
    pg_deposit_id, pg_version, status, is_terminal, late_slip_accepted_until, ordered_amount_minor,
    transferred_amount_minor, amount_received_minor, fee_total_minor, credited_amount_minor, fee_breakdown, overpayment,
    balance_transaction_id, clearing_available_at, our_order_id, our_user_id, credited_user_at, reversed_at)
  SELECT r.pg_deposit_id, r.pg_version, r.status, r.is_terminal, r.late_slip_accepted_until, r.ordered_amount_minor,
         r.transferred_amount_minor, r.amount_received_minor, r.fee_total_minor, r.credited_amount_minor,
         r.fee_breakdown, r.overpayment, r.balance_transaction_id, r.clearing_available_at, r.our_order_id,
         r.our_user_id, r.credited_user_at, r.reversed_at
    FROM staged s, jsonb_populate_record(NULL::{schema}.pg_deposits, s.content) AS r
   WHERE s.kind = 'deposit' AND s.object_id = ANY(%(ids)s)
   ORDER BY s.object_id
  RETURNING *
)
INSERT INTO {schema}.imported_objects (kind, object_id, owner_id, source, imported)
SELECT 'deposit', pg_deposit_id, pg_deposit_id, %(source)s, to_jsonb(made) FROM made;

-- write_deposit_entries: what the old handler moved for new deposits: a credit, and its debit where it was taken back.
WITH moved AS (
  SELECT 'deposit:' || s.object_id || e.ending AS key, s.content ->> 'our_user_id' AS user_id, e.sign * COALESCE(
           (s.content ->> 'credited_to_user_minor')::bigint, (s.content ->> 'amount_received_minor')::bigint) AS amount,
         (s.content ->> e.mark)::timestamptz AS at
    FROM staged s
    JOIN (VALUES (':credit', 1, 'credited_user_at'), (':debit', -1, 'reversed_at')) AS e(ending, sign, mark)
      ON s.content ->> e.mark IS NOT NULL
   WHERE s.kind = 'deposit' AND s.object_id = ANY(%(ids)s)
), kept AS (
  INSERT INTO {schema}.pg_user_balance_entries (entry_key, user_id, amount_minor, event_id, created_at)
  SELECT key, user_id, amount, 'import:' || %(source)s, at FROM moved
)
INSERT INTO {schema}.pg_user_balances AS b (user_id, balance_minor)
SELECT user_id, sum(amount)::bigint FROM moved GROUP BY user_id ORDER BY user_id
ON CONFLICT (user_id) DO UPDATE SET balance_minor = b.balance_minor + EXCLUDED.balance_minor;

-- write_overpayment_flag: new rows, noted as imported; the count must be theirs.
WITH made AS (
  INSERT INTO {schema}.pg_deposit_overpayment_flags (
    claim_id, pg_deposit_id, observed_deposit_version, cause, amount_minor, slip_received_at, status_snapshot,
    action_required_snapshot, expected_response_at, raw_flag)
  SELECT r.claim_id, r.pg_deposit_id, r.observed_deposit_version, r.cause, r.amount_minor, r.slip_received_at,
         r.status_snapshot, r.action_required_snapshot, r.expected_response_at, r.raw_flag
    FROM staged s, jsonb_populate_record(NULL::{schema}.pg_deposit_overpayment_flags, s.content) AS r
   WHERE s.kind = 'overpayment_flag' AND s.object_id = ANY(%(ids)s)
   ORDER BY s.object_id
  RETURNING *
)
INSERT INTO {schema}.imported_objects (kind, object_id, owner_id, source, imported)
SELECT 'overpayment_flag', claim_id, pg_deposit_id, %(source)s, to_jsonb(made) FROM made;

-- write_withdrawal: new rows, noted as imported; the count must be theirs. A handler that marks no refund, no release
-- and no first closing has done what the status asks for; where a chunk was taken back of an order that is settled and
-- open, the closing had left before, or is barred.
WITH made AS (
  INSERT INTO {schema}.pg_withdrawals (
    pg_withdrawal_id, pg_version, status, amount_total_minor, fee_total_minor, total_locked_minor, filled_minor,
    remaining_minor, refunded_minor, fee_recognized_minor, settled_splits, max_splits, our_ref,
    replacement_withdrawal_id, closed_at, close_enqueued_at, refund_enqueued_at, user_lock_released_at)
  SELECT r.pg_withdrawal_id, r.pg_version, r.status, r.amount_total_minor, r.fee_total_minor, r.total_locked_minor,
         COALESCE(r.filled_minor, 0), r.remaining_minor, r.refunded_minor, r.fee_recognized_minor, r.settled_splits,
         r.max_splits, r.our_ref, r.replacement_withdrawal_id, r.closed_at,
         COALESCE(r.close_enqueued_at, r.closed_at,
                  CASE WHEN NOT s.content ? 'close_enqueued_at' AND r.status = 'settled' AND r.remaining_minor = 0
                            AND EXISTS (SELECT FROM staged t WHERE t.kind = 'reversal' AND t.owner_id = s.object_id)
                       THEN now() END),
         CASE WHEN s.content ? 'refund_enqueued_at' THEN r.refund_enqueued_at
              WHEN r.status IN ('expired', 'canceled') THEN now() END,
         CASE WHEN s.content ? 'user_lock_released_at' THEN r.user_lock_released_at
              WHEN r.status = 'rejected' THEN now() END
    FROM staged s, jsonb_populate_record(NULL::{schema}.pg_withdrawals, s.content) AS r
   WHERE s.kind = 'withdrawal' AND s.object_id = ANY(%(ids)s)
   ORDER BY s.object_id
  RETURNING *
)
INSERT INTO {schema}.imported_objects (kind, object_id, owner_id, source, imported)
SELECT 'withdrawal', pg_withdrawal_id, pg_withdrawal_id, %(source)s, to_jsonb(made) FROM made;

-- write_fill: new rows, noted as imported; the count must be theirs.
WITH made AS (
  INSERT INTO {schema}.pg_withdrawal_fills (
    leg_ref, pg_withdrawal_id, sequence, amount_minor, fee_recognized_minor, settled_at, auto_confirm_at,
    balance_transaction_id, reversed_at)
  SELECT r.leg_ref, r.pg_withdrawal_id, r.sequence, r.amount_minor, r.fee_recognized_minor, r.settled_at,
         r.auto_confirm_at, r.balance_transaction_id, r.reversed_at
    FROM staged s, jsonb_populate_record(NULL::{schema}.pg_withdrawal_fills, s.content) AS r
   WHERE s.kind = 'fill' AND s.object_id = ANY(%(ids)s)
   ORDER BY s.object_id
  RETURNING *
)
INSERT INTO {schema}.imported_objects (kind, object_id, owner_id, source, imported)
SELECT 'fill', leg_ref, pg_withdrawal_id, %(source)s, to_jsonb(made) FROM made;

-- write_reversal: new rows, noted as imported; the count must be theirs. The amount is the chunk's where none is given.
-- Without a snapshot's status the order's own stands in; one that is settled and closed was closed after the reversal.
WITH made AS (
  INSERT INTO {schema}.pg_withdrawal_fill_reversals (
    leg_ref, pg_withdrawal_id, reason_code, reverses_balance_transaction_id, reversal_balance_transaction_id,
    reversed_at, replacement_withdrawal_id, amount_minor, status_snapshot, effect_enqueued_at)
  SELECT r.leg_ref, r.pg_withdrawal_id, r.reason_code, r.reverses_balance_transaction_id,
         r.reversal_balance_transaction_id, r.reversed_at, r.replacement_withdrawal_id,
         COALESCE(r.amount_minor, f.amount_minor),
         COALESCE(r.status_snapshot,
                  CASE WHEN w.status = 'settled' AND w.closed_at IS NOT NULL THEN 'partially_filled' ELSE w.status END),
         COALESCE(r.effect_enqueued_at, r.reversed_at)
    FROM staged s
   CROSS JOIN LATERAL jsonb_populate_record(NULL::{schema}.pg_withdrawal_fill_reversals, s.content) AS r
    JOIN {schema}.pg_withdrawals w ON w.pg_withdrawal_id = r.pg_withdrawal_id
    LEFT JOIN {schema}.pg_withdrawal_fills f ON f.leg_ref = r.leg_ref
   WHERE s.kind = 'reversal' AND s.object_id = ANY(%(ids)s)
   ORDER BY s.object_id
  RETURNING *
)
INSERT INTO {schema}.imported_objects (kind, object_id, owner_id, source, imported)
SELECT 'reversal', leg_ref, pg_withdrawal_id, %(source)s, to_jsonb(made) FROM made;

-- write_transaction: new rows, noted as imported; the count must be theirs.
WITH made AS (
  INSERT INTO {schema}.pg_balance_txns (
    btxn_id, type, direction, amount_minor, bucket_from, bucket_to, source_id, created_at, merchant_id, balance_after)
  SELECT r.btxn_id, r.type, r.direction, r.amount_minor, r.bucket_from, r.bucket_to, r.source_id, r.created_at,
         COALESCE(r.merchant_id, %(merchant)s), r.balance_after
    FROM staged s, jsonb_populate_record(NULL::{schema}.pg_balance_txns, s.content) AS r
   WHERE s.kind = 'transaction' AND s.object_id = ANY(%(ids)s)
   ORDER BY s.object_id
  RETURNING *
)
INSERT INTO {schema}.imported_objects (kind, object_id, owner_id, source, imported)
SELECT 'transaction', btxn_id, btxn_id, %(source)s, to_jsonb(made) FROM made;

-- write_balance: what the credits of deposits do not explain of a balance becomes its opening entry; the balances are
-- noted as imported, and the count must be theirs. Where the source does not tell what they explain, the imported
-- entries do.
WITH opened AS (
  SELECT s.object_id AS user_id, (s.content ->> 'balance_minor')::bigint AS balance,
         COALESCE((s.content ->> 'explained_minor')::bigint,
                  (SELECT sum(e.amount_minor) FROM {schema}.pg_user_balance_entries e
                    WHERE e.user_id = s.object_id AND e.event_id LIKE 'import:%%'), 0)::bigint AS explained
    FROM staged s
   WHERE s.kind = 'balance' AND s.object_id = ANY(%(ids)s)
), kept AS (
  INSERT INTO {schema}.pg_user_balance_entries (entry_key, user_id, amount_minor, event_id)
  SELECT 'import:' || user_id || ':opening', user_id, balance - explained, 'import:' || %(source)s
    FROM opened WHERE balance <> explained
), moved AS (
  INSERT INTO {schema}.pg_user_balances AS b (user_id, balance_minor)
  SELECT user_id, balance - explained FROM opened ORDER BY user_id
  ON CONFLICT (user_id) DO UPDATE SET balance_minor = b.balance_minor + EXCLUDED.balance_minor
)
INSERT INTO {schema}.imported_objects (kind, object_id, owner_id, source, imported)
SELECT 'balance', user_id, user_id, %(source)s,
       jsonb_build_object('user_id', user_id, 'balance_minor', balance, 'explained_minor', explained)
  FROM opened;
