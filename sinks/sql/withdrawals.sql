-- load_withdrawals: the touched rows, and whether a chunk was taken back by an event that itself was settled. Here and
-- below a look-up of one row stands as a value, since EXISTS may be planned as a scan of the whole other table.
SELECT w.pg_withdrawal_id, w.pg_version, w.status, w.amount_total_minor, w.remaining_minor, w.filled_minor,
       w.fee_total_minor, w.total_locked_minor, w.refunded_minor, w.fee_recognized_minor, w.settled_splits,
       w.max_splits, w.our_ref, w.replacement_withdrawal_id, w.closed_at IS NOT NULL,
       w.close_enqueued_at IS NOT NULL, w.refund_enqueued_at IS NOT NULL, w.user_lock_released_at IS NOT NULL,
       (SELECT true FROM {schema}.pg_withdrawal_fill_reversals r
         WHERE r.pg_withdrawal_id = w.pg_withdrawal_id AND r.status_snapshot = 'settled' LIMIT 1) IS NOT NULL
  FROM {schema}.pg_withdrawals w
 WHERE w.pg_withdrawal_id = ANY(%s);

-- count_waiting: how many events wait for each of these withdrawals that have no row yet.
SELECT i.object_id, count(*)
  FROM {schema}.pg_webhook_inbox i
 WHERE i.processed_at IS NULL AND i.parked_reason = 'snapshot' AND i.object_id = ANY(%(objects)s)
   AND i.partition = ANY(%(partitions)s)
   AND (SELECT true FROM {schema}.pg_withdrawals w WHERE w.pg_withdrawal_id = i.object_id) IS NULL
 GROUP BY i.object_id;

-- load_waiting: what waits for the rows of these withdrawals, in order of arrival; few enough by count_waiting.
SELECT i.event_id, i.event_type, i.event_raw, i.received_at, i.object_id, i.object_kind, i.version, i.merchant_id,
       i.sequence, i.partition, i.arrival_seq, i.source_partition, i.source_offset, i.key_id, i.origin
  FROM {schema}.pg_webhook_inbox i
 WHERE i.processed_at IS NULL AND i.parked_reason = 'snapshot' AND i.object_id = ANY(%(objects)s)
   AND i.partition = ANY(%(partitions)s)
 ORDER BY i.arrival_seq, i.partition;

-- load_fills: what is known of these chunks.
SELECT leg_ref, pg_withdrawal_id, amount_minor, sequence, fee_recognized_minor, settled_at, auto_confirm_at,
       balance_transaction_id, reversed_at
  FROM {schema}.pg_withdrawal_fills
 WHERE leg_ref = ANY(%s);

-- load_reversals: what is known of the reversals of these chunks, and which reversals name these transactions.
SELECT leg_ref, pg_withdrawal_id, reason_code, reverses_balance_transaction_id, reversal_balance_transaction_id,
       reversed_at, amount_minor, status_snapshot, replacement_withdrawal_id
  FROM {schema}.pg_withdrawal_fill_reversals
 WHERE leg_ref = ANY(%(legs)s) OR reverses_balance_transaction_id = ANY(%(transactions)s)
    OR reversal_balance_transaction_id = ANY(%(transactions)s);

-- load_transactions: what is known of these balance transactions, as far as it is compared.
SELECT btxn_id, type, direction, amount_minor, created_at, bucket_from, bucket_to, source_id
  FROM {schema}.pg_balance_txns
 WHERE btxn_id = ANY(%s);

-- write_withdrawals: each row that is new or whose version rises once, under the version guard; the count must be that
-- of the rows. Marks keep their first moment; closed_at alone is taken back.
INSERT INTO {schema}.pg_withdrawals AS w (
  pg_withdrawal_id, pg_version, status, amount_total_minor, fee_total_minor, total_locked_minor, filled_minor,
  remaining_minor, refunded_minor, fee_recognized_minor, settled_splits, max_splits, our_ref,
  replacement_withdrawal_id, closed_at, close_enqueued_at, refund_enqueued_at, user_lock_released_at)
SELECT r.pg_withdrawal_id, r.pg_version, r.status, r.amount_total_minor, r.fee_total_minor, r.total_locked_minor,
       r.filled_minor, r.remaining_minor, r.refunded_minor, r.fee_recognized_minor, r.settled_splits, r.max_splits,
       r.our_ref, r.replacement_withdrawal_id, CASE WHEN r.closed THEN now() END,
       CASE WHEN r.close_enqueued THEN now() END, CASE WHEN r.refund_enqueued THEN now() END,
       CASE WHEN r.lock_released THEN now() END
  FROM jsonb_to_recordset(%s::jsonb) AS r(
         pg_withdrawal_id text, pg_version bigint, status text, amount_total_minor bigint, fee_total_minor bigint,
         total_locked_minor bigint, filled_minor bigint, remaining_minor bigint, refunded_minor bigint,
         fee_recognized_minor bigint, settled_splits smallint, max_splits smallint, our_ref text,
         replacement_withdrawal_id text, closed boolean, close_enqueued boolean, refund_enqueued boolean,
         lock_released boolean)
ON CONFLICT (pg_withdrawal_id) DO UPDATE
   SET pg_version = EXCLUDED.pg_version,
       status = EXCLUDED.status,
       fee_total_minor = EXCLUDED.fee_total_minor,
       total_locked_minor = EXCLUDED.total_locked_minor,
       filled_minor = EXCLUDED.filled_minor,
       remaining_minor = EXCLUDED.remaining_minor,
       refunded_minor = EXCLUDED.refunded_minor,
       fee_recognized_minor = EXCLUDED.fee_recognized_minor,
       settled_splits = EXCLUDED.settled_splits,
       max_splits = EXCLUDED.max_splits,
       our_ref = EXCLUDED.our_ref,
       replacement_withdrawal_id = EXCLUDED.replacement_withdrawal_id,
       closed_at = CASE WHEN EXCLUDED.closed_at IS NOT NULL THEN COALESCE(w.closed_at, EXCLUDED.closed_at) END,
       close_enqueued_at = COALESCE(w.close_enqueued_at, EXCLUDED.close_enqueued_at),
       refund_enqueued_at = COALESCE(w.refund_enqueued_at, EXCLUDED.refund_enqueued_at),
       user_lock_released_at = COALESCE(w.user_lock_released_at, EXCLUDED.user_lock_released_at),
       updated_at = now()
 WHERE w.pg_version < EXCLUDED.pg_version;

-- mark_withdrawals: rows of which only marks and members that are set once change; the count must be that of the rows.
UPDATE {schema}.pg_withdrawals AS w
   SET fee_total_minor = r.fee_total_minor,
       total_locked_minor = r.total_locked_minor,
       max_splits = r.max_splits,
       our_ref = r.our_ref,
       replacement_withdrawal_id = r.replacement_withdrawal_id,
       closed_at = CASE WHEN r.closed THEN COALESCE(w.closed_at, now()) END,
       close_enqueued_at = COALESCE(w.close_enqueued_at, CASE WHEN r.close_enqueued THEN now() END),
       refund_enqueued_at = COALESCE(w.refund_enqueued_at, CASE WHEN r.refund_enqueued THEN now() END),
       user_lock_released_at = COALESCE(w.user_lock_released_at, CASE WHEN r.lock_released THEN now() END),
       updated_at = now()
  FROM jsonb_to_recordset(%s::jsonb) AS r(
         pg_withdrawal_id text, pg_version bigint, fee_total_minor bigint, total_locked_minor bigint,
         max_splits smallint, our_ref text, replacement_withdrawal_id text, closed boolean, close_enqueued boolean,
         refund_enqueued boolean, lock_released boolean)
 WHERE w.pg_withdrawal_id = r.pg_withdrawal_id AND w.pg_version = r.pg_version;

-- write_fills: chunks seen for the first time, in order of leg_ref; the count must be that of the chunks.
-- Among them stand the legs of new reversals that have no chunk: they keep the leg until the transaction ends, so that
-- another partition cannot bring a chunk of it at the same moment without looking at the reversal.
INSERT INTO {schema}.pg_withdrawal_fills (
  leg_ref, pg_withdrawal_id, sequence, amount_minor, fee_recognized_minor, settled_at, auto_confirm_at,
  balance_transaction_id, reversed_at)
SELECT r.leg_ref, r.pg_withdrawal_id, r.sequence, r.amount_minor, r.fee_recognized_minor, r.settled_at,
       r.auto_confirm_at, r.balance_transaction_id, r.reversed_at
  FROM jsonb_to_recordset(%s::jsonb) AS r(
         leg_ref text, pg_withdrawal_id text, sequence smallint, amount_minor bigint, fee_recognized_minor bigint,
         settled_at timestamptz, auto_confirm_at timestamptz, balance_transaction_id text, reversed_at timestamptz)
 ORDER BY r.leg_ref
ON CONFLICT (leg_ref) DO NOTHING;

-- give_back_legs: a leg without a chunk was only kept for the moment. A leg that somebody else had taken is his: the
-- count of write_fills has told it, and the transaction is rolled back.
DELETE FROM {schema}.pg_withdrawal_fills WHERE leg_ref = ANY(%s);

-- find_reversed: reversals of the new chunks that are stored, looked for once nobody else can bring one; the count must
-- be that of the chunks decided as reversed.
SELECT FROM {schema}.pg_withdrawal_fill_reversals WHERE leg_ref = ANY(%s);

-- mark_fills: stored chunks that were taken back; the count must be that of the chunks.
UPDATE {schema}.pg_withdrawal_fills AS f
   SET reversed_at = COALESCE(f.reversed_at, r.reversed_at)
  FROM unnest(%s::text[], %s::timestamptz[]) AS r(leg_ref, reversed_at)
 WHERE f.leg_ref = r.leg_ref;

-- lock_transactions: holds what stands for the transactions that new reversals name, in one order for all, until the
-- transaction ends. A unique key guards each of the two columns; only this guards one id in the one and in the other.
SELECT pg_advisory_xact_lock(%(space)s::int, lock) FROM unnest(%(locks)s::int[]) AS lock;

-- find_taken: other reversals that name these transactions, in either role; there must be none.
SELECT FROM {schema}.pg_withdrawal_fill_reversals
 WHERE reverses_balance_transaction_id = ANY(%(transactions)s)
    OR reversal_balance_transaction_id = ANY(%(transactions)s);

-- write_reversals: reversals seen for the first time, in order of leg_ref; the count must be that of the reversals.
INSERT INTO {schema}.pg_withdrawal_fill_reversals (
  leg_ref, pg_withdrawal_id, reason_code, reverses_balance_transaction_id, reversal_balance_transaction_id,
  reversed_at, replacement_withdrawal_id, amount_minor, status_snapshot, effect_enqueued_at)
SELECT r.leg_ref, r.pg_withdrawal_id, r.reason_code, r.reverses_balance_transaction_id,
       r.reversal_balance_transaction_id, r.reversed_at, r.replacement_withdrawal_id, r.amount_minor,
       r.status_snapshot, now()
  FROM jsonb_to_recordset(%s::jsonb) AS r(
         leg_ref text, pg_withdrawal_id text, reason_code text, reverses_balance_transaction_id text,
         reversal_balance_transaction_id text, reversed_at timestamptz, replacement_withdrawal_id text,
         amount_minor bigint, status_snapshot text)
 ORDER BY r.leg_ref
ON CONFLICT DO NOTHING;

-- write_transactions: balance transactions seen for the first time, in order of their ids; the count must be theirs.
INSERT INTO {schema}.pg_balance_txns (
  btxn_id, type, direction, amount_minor, bucket_from, bucket_to, source_id, created_at, merchant_id, balance_after)
SELECT r.btxn_id, r.type, r.direction, r.amount_minor, r.bucket_from, r.bucket_to, r.source_id, r.created_at,
       r.merchant_id, r.balance_after
  FROM jsonb_to_recordset(%s::jsonb) AS r(
         btxn_id text, type text, direction text, amount_minor bigint, bucket_from text, bucket_to text,
         source_id text, created_at timestamptz, merchant_id text, balance_after jsonb)
 ORDER BY r.btxn_id
ON CONFLICT (btxn_id) DO NOTHING;
