-- moment: the database's clock; the first statement of the transaction, so that it takes the snapshot.
SELECT clock_timestamp();

-- positions: how far the sink has come in a topic, and the next numbers of its partitions.
SELECT partition, next_offset, next_outbox_seq, next_arrival_seq
  FROM {schema}.sink_offsets WHERE topic = %(topic)s ORDER BY partition;

-- create_touched: where the objects of an audit of a part are kept until the transaction ends.
CREATE TEMPORARY TABLE audit_touched (object_id text PRIMARY KEY) ON COMMIT DROP;

-- fill_touched: the objects of which something was received or changed since a moment; what an import took over belongs
-- to the object that the question `imported` names.
INSERT INTO pg_temp.audit_touched
SELECT object_id FROM {schema}.pg_webhook_inbox WHERE received_at >= %(since)s OR processed_at >= %(since)s
UNION
SELECT pg_deposit_id FROM {schema}.pg_deposits WHERE updated_at >= %(since)s
UNION
SELECT coalesce(substring(entry_key from '^deposit:(.*):(?:credit|debit)$'), entry_key)
  FROM {schema}.pg_user_balance_entries WHERE created_at >= %(since)s
UNION
SELECT pg_deposit_id FROM {schema}.pg_deposit_overpayment_flags WHERE received_at >= %(since)s
UNION
SELECT pg_withdrawal_id FROM {schema}.pg_withdrawals WHERE updated_at >= %(since)s
UNION
SELECT pg_withdrawal_id FROM {schema}.pg_withdrawal_fills WHERE received_at >= %(since)s
UNION
SELECT pg_withdrawal_id FROM {schema}.pg_withdrawal_fill_reversals WHERE effect_enqueued_at >= %(since)s
UNION
SELECT aggregateid FROM {schema}.pg_outbox WHERE created_at >= %(since)s
UNION
SELECT CASE WHEN kind IN ('overpayment_flag', 'fill', 'reversal') THEN owner_id
            WHEN kind = 'balance' THEN 'import:' || object_id || ':opening'
            ELSE object_id END
  FROM {schema}.imported_objects WHERE imported_at >= %(since)s;

-- arrival_firsts: the lowest arrival number since a moment by partition, and the one before it; a parked event that was
-- applied since then has an old number, and then more is looked at than must be.
SELECT n.partition, n.first,
       (SELECT max(i.arrival_seq) FROM {schema}.pg_webhook_inbox i
         WHERE i.partition = n.partition AND i.arrival_seq < n.first)
  FROM (SELECT partition, min(arrival_seq) AS first FROM {schema}.pg_webhook_inbox
         WHERE received_at >= %(since)s OR processed_at >= %(since)s GROUP BY partition) AS n;

-- outbox_firsts: the same of the outbox's numbers.
SELECT n.partition, n.first,
       (SELECT max(o.seq) FROM {schema}.pg_outbox o WHERE o.partition = n.partition AND o.seq < n.first)
  FROM (SELECT partition, min(seq) AS first FROM {schema}.pg_outbox WHERE created_at >= %(since)s GROUP BY partition)
       AS n;

-- arrival_ends: the arrival numbers of each partition. Processed events are pruned from the lowest on, parked ones stay:
-- so of the numbers below the lowest processed event, those that are there are parked.
SELECT e.partition, e.events, e.highest, last.source_offset, e.lowest_processed, first.source_offset,
       (SELECT count(*) FROM {schema}.pg_webhook_inbox i
         WHERE i.partition = e.partition AND i.arrival_seq < e.lowest_processed)
  FROM (SELECT partition, count(*) AS events, max(arrival_seq) AS highest,
               min(arrival_seq) FILTER (WHERE processed_at IS NOT NULL) AS lowest_processed
          FROM {schema}.pg_webhook_inbox GROUP BY partition) AS e
  JOIN {schema}.pg_webhook_inbox last ON last.partition = e.partition AND last.arrival_seq = e.highest
  LEFT JOIN {schema}.pg_webhook_inbox first ON first.partition = e.partition AND first.arrival_seq = e.lowest_processed;

-- arrival_gaps: neighbours in a partition whose arrival numbers do not follow each other, from some number on.
SELECT partition, before, arrival_seq, source_before, source_offset
  FROM (SELECT partition, arrival_seq, source_offset,
               lag(arrival_seq) OVER w AS before, lag(source_offset) OVER w AS source_before
          FROM {schema}.pg_webhook_inbox JOIN unnest(%(partitions)s::int[], %(firsts)s::bigint[])
                 AS asked(partition, first) USING (partition)
         WHERE arrival_seq >= first
        WINDOW w AS (PARTITION BY partition ORDER BY arrival_seq)) AS numbered
 WHERE arrival_seq <> before + 1 ORDER BY partition, arrival_seq;

-- dropped: events that had an arrival number while they were parked and were set aside when they were decided.
SELECT source_partition, source_offset FROM {schema}.quarantined_events
 WHERE source_topic = %(events)s AND headers ->> 'ce_source' = '/inbox' ORDER BY source_partition, source_offset;

-- scattered: objects whose events lie in more than one partition.
SELECT object_id, min(partition), max(partition)
  FROM {schema}.pg_webhook_inbox WHERE object_id {among} GROUP BY object_id HAVING min(partition) <> max(partition) ORDER BY object_id;

-- outbox_ends: the numbers of each partition.
SELECT partition, min(seq), max(seq), count(*) FROM {schema}.pg_outbox GROUP BY partition;

-- outbox_gaps: neighbours in a partition whose numbers do not follow each other, from some number on.
SELECT partition, before, seq
  FROM (SELECT partition, seq, lag(seq) OVER (PARTITION BY partition ORDER BY seq) AS before
          FROM {schema}.pg_outbox JOIN unnest(%(partitions)s::int[], %(firsts)s::bigint[])
                 AS asked(partition, first) USING (partition)
         WHERE seq >= first) AS numbered
 WHERE seq <> before + 1 ORDER BY partition, seq;

-- find_deliveries: where each delivery was recorded; one look-up by key a store and delivery.
SELECT i.source_partition, i.source_offset, i.digest, again.found IS NOT NULL, aside.found IS NOT NULL
  FROM unnest(%(ids)s::text[], %(partitions)s::int[], %(offsets)s::bigint[], %(own_partitions)s::int[],
              %(own_offsets)s::bigint[])
       WITH ORDINALITY AS r(id, partition, position, own_partition, own_position, n)
  LEFT JOIN LATERAL (
    SELECT source_partition, source_offset, sha256(convert_to(event_raw, 'UTF8')) AS digest
      FROM {schema}.pg_webhook_inbox WHERE event_id = r.id LIMIT 1) AS i ON true
  LEFT JOIN LATERAL (
    SELECT 1 AS found FROM {schema}.redeliveries
     WHERE event_id = r.id AND source_partition = r.partition AND source_offset = r.position LIMIT 1) AS again ON true
  LEFT JOIN LATERAL (
    SELECT 1 AS found FROM {schema}.quarantined_events
     WHERE (source_topic = %(events)s AND source_partition = r.partition AND source_offset = r.position)
        OR (source_topic = %(state_changes)s AND source_partition = r.own_partition AND source_offset = r.own_position)
     LIMIT 1) AS aside ON true
 ORDER BY r.n;

-- find_dead: whether each dead letter is quarantined.
SELECT aside.found IS NOT NULL
  FROM unnest(%(partitions)s::int[], %(offsets)s::bigint[]) WITH ORDINALITY AS r(partition, position, n)
  LEFT JOIN LATERAL (
    SELECT 1 AS found FROM {schema}.quarantined_events
     WHERE source_topic = %(topic)s AND source_partition = r.partition AND source_offset = r.position
     LIMIT 1) AS aside ON true
 ORDER BY r.n;

-- count_events: how many events the walk over all objects has, for the progress bar.
SELECT count(*) FROM {schema}.pg_webhook_inbox WHERE object_id {among};

-- count_rows: how many rows the walks over all objects would have, were all of them asked for.
SELECT (SELECT count(*) FROM {schema}.pg_webhook_inbox) AS inbox,
       (SELECT count(*) FROM {schema}.pg_deposits) AS deposits,
       (SELECT count(*) FROM {schema}.pg_user_balance_entries) AS entries,
       (SELECT count(*) FROM {schema}.pg_deposit_overpayment_flags) AS flags,
       (SELECT count(*) FROM {schema}.pg_withdrawals) AS withdrawals,
       (SELECT count(*) FROM {schema}.pg_withdrawal_fills) AS fills,
       (SELECT count(*) FROM {schema}.pg_withdrawal_fill_reversals) AS reversals,
       (SELECT count(*) FROM {schema}.pg_balance_txns) AS transactions,
       (SELECT count(*) FROM {schema}.pg_outbox) AS outbox;

-- inbox: every event by object, in the order of arrival.
SELECT object_id, event_id, event_raw, partition, arrival_seq, verdict, reason, processed_at, object_kind, version
  FROM {schema}.pg_webhook_inbox WHERE object_id {among} ORDER BY object_id COLLATE "C", partition, arrival_seq;

-- deposits: every deposit's row, and to whom the merchant's service says it belongs.
SELECT d.pg_deposit_id, d.pg_version, d.status, d.is_terminal, d.late_slip_accepted_until, d.ordered_amount_minor,
       d.transferred_amount_minor, d.amount_received_minor, d.fee_total_minor, d.credited_amount_minor,
       d.fee_breakdown::text, d.overpayment::text, d.balance_transaction_id, d.clearing_available_at, d.our_order_id,
       d.our_user_id, d.credited_user_at IS NOT NULL, d.reversed_at IS NOT NULL, c.our_order_id, c.our_user_id
  FROM {schema}.pg_deposits d LEFT JOIN {schema}.pg_deposit_correlations c USING (pg_deposit_id)
 WHERE d.pg_deposit_id {among}
 ORDER BY d.pg_deposit_id COLLATE "C";

-- entries: every balance entry by its deposit.
SELECT pg_deposit_id, entry_key, user_id, amount_minor, event_id
  FROM (SELECT *, coalesce(substring(entry_key from '^deposit:(.*):(?:credit|debit)$'), entry_key) AS pg_deposit_id
          FROM {schema}.pg_user_balance_entries) AS e
 WHERE pg_deposit_id {among} ORDER BY pg_deposit_id COLLATE "C", entry_key COLLATE "C";

-- flags: every overpayment flag by its deposit.
SELECT pg_deposit_id, claim_id, observed_deposit_version, cause, amount_minor, slip_received_at, status_snapshot,
       action_required_snapshot, expected_response_at, raw_flag::text
  FROM {schema}.pg_deposit_overpayment_flags
 WHERE pg_deposit_id {among} ORDER BY pg_deposit_id COLLATE "C", claim_id COLLATE "C";

-- withdrawals: every withdrawal's row, marks as present or absent.
SELECT pg_withdrawal_id, pg_version, status, amount_total_minor, fee_total_minor, total_locked_minor, max_splits,
       filled_minor, remaining_minor, refunded_minor, fee_recognized_minor, settled_splits, our_ref,
       replacement_withdrawal_id, closed_at IS NOT NULL, close_enqueued_at IS NOT NULL,
       refund_enqueued_at IS NOT NULL, user_lock_released_at IS NOT NULL
  FROM {schema}.pg_withdrawals WHERE pg_withdrawal_id {among} ORDER BY pg_withdrawal_id COLLATE "C";

-- fills: every chunk by its withdrawal.
SELECT pg_withdrawal_id, leg_ref, sequence, amount_minor, fee_recognized_minor, settled_at, auto_confirm_at,
       balance_transaction_id, reversed_at
  FROM {schema}.pg_withdrawal_fills
 WHERE pg_withdrawal_id {among} ORDER BY pg_withdrawal_id COLLATE "C", leg_ref COLLATE "C";

-- reversals: every reversal of a chunk by its withdrawal.
SELECT pg_withdrawal_id, leg_ref, reason_code, reverses_balance_transaction_id, reversal_balance_transaction_id,
       reversed_at, replacement_withdrawal_id, amount_minor, status_snapshot, effect_enqueued_at IS NOT NULL
  FROM {schema}.pg_withdrawal_fill_reversals
 WHERE pg_withdrawal_id {among} ORDER BY pg_withdrawal_id COLLATE "C", leg_ref COLLATE "C";

-- transactions: every balance transaction.
SELECT btxn_id, type, direction, amount_minor, bucket_from, bucket_to, source_id, created_at, merchant_id,
       balance_after::text
  FROM {schema}.pg_balance_txns WHERE btxn_id {among} ORDER BY btxn_id COLLATE "C";

-- imported: what was taken over from the handler before, by the object that it belongs to; an opening balance stands by
-- itself, as its entry does.
SELECT object_id, kind, row_id, source, imported::text
  FROM (SELECT CASE WHEN kind IN ('overpayment_flag', 'fill', 'reversal') THEN owner_id
                    WHEN kind = 'balance' THEN 'import:' || object_id || ':opening'
                    ELSE object_id END AS object_id,
               kind, object_id AS row_id, source, imported
          FROM {schema}.imported_objects) AS i
 WHERE object_id {among} ORDER BY object_id COLLATE "C", kind, row_id COLLATE "C";

-- shared_transactions: balance transactions that the reversals of two chunks name.
SELECT transaction_id, min(leg_ref), max(leg_ref)
  FROM (SELECT leg_ref, reverses_balance_transaction_id AS transaction_id FROM {schema}.pg_withdrawal_fill_reversals
        UNION ALL
        SELECT leg_ref, reversal_balance_transaction_id FROM {schema}.pg_withdrawal_fill_reversals) AS named
 GROUP BY transaction_id HAVING count(*) > 1 ORDER BY transaction_id;

-- contradictions: chunks and reversals of one leg that do not fit together.
SELECT leg_ref, f.pg_withdrawal_id, r.pg_withdrawal_id
  FROM {schema}.pg_withdrawal_fills f JOIN {schema}.pg_withdrawal_fill_reversals r USING (leg_ref)
 WHERE f.pg_withdrawal_id <> r.pg_withdrawal_id OR f.amount_minor <> r.amount_minor
    OR f.balance_transaction_id <> r.reverses_balance_transaction_id
 ORDER BY leg_ref;

-- outbox: every row by its object, in order.
SELECT aggregateid, partition, seq, aggregatetype, type, topic, payload::text, dedupe_key, causation_id, version,
       created_at
  FROM {schema}.pg_outbox WHERE aggregateid {among} ORDER BY aggregateid COLLATE "C", partition, seq;

-- balances: users whose balance is not the sum of their entries.
SELECT user_id, coalesce(b.balance_minor, 0), coalesce(e.total, 0)
  FROM {schema}.pg_user_balances b
  FULL JOIN (SELECT user_id, sum(amount_minor) AS total FROM {schema}.pg_user_balance_entries GROUP BY user_id) e
       USING (user_id)
 WHERE coalesce(b.balance_minor, 0) <> coalesce(e.total, 0) OR b.user_id IS NULL ORDER BY user_id;

-- count_users: whose balances are held against their entries.
SELECT count(*) FROM {schema}.pg_user_balances;

-- count_followed: whose balances are followed step by step.
SELECT count(*) FROM {schema}.pg_user_balances WHERE user_id {among_users};

-- unannounced: users some of whose entries are no longer in the outbox, so that the steps cannot be followed.
SELECT count(*) FROM (
  SELECT user_id, count(*) AS entries FROM {schema}.pg_user_balance_entries
   WHERE user_id {among_users} GROUP BY user_id) AS e
  LEFT JOIN (SELECT payload ->> 'user_id' AS user_id, count(*) AS entries FROM {schema}.pg_outbox
              WHERE topic = 'balance_entry' GROUP BY 1) AS o USING (user_id)
 WHERE e.entries IS DISTINCT FROM o.entries;

-- steps: balances that were announced as being after an entry and are before none, or the other way round.
-- The steps of a user lead from 0 to the sum of the entries whatever their order, if each begins where another ended.
WITH announced AS (
  SELECT payload ->> 'user_id' AS user_id, (payload -> 'balance_after_minor')::numeric AS after,
         (payload -> 'amount_minor')::numeric AS amount
    FROM {schema}.pg_outbox
   WHERE topic = 'balance_entry' AND payload ->> 'user_id' {among_users}
     AND jsonb_typeof(payload -> 'balance_after_minor') = 'number'
     AND jsonb_typeof(payload -> 'amount_minor') = 'number'
), whole AS (
  SELECT user_id, e.total FROM (
    SELECT user_id, count(*) AS entries, sum(amount_minor) AS total
      FROM {schema}.pg_user_balance_entries GROUP BY user_id) AS e
    JOIN (SELECT user_id, count(*) AS entries FROM announced GROUP BY user_id) AS a USING (user_id)
   WHERE e.entries = a.entries
), ends AS (
  SELECT user_id, after AS balance, 1 AS step FROM announced
  UNION ALL SELECT user_id, after - amount, -1 FROM announced
  UNION ALL SELECT user_id, 0, 1 FROM whole
  UNION ALL SELECT user_id, total, -1 FROM whole
)
SELECT user_id, balance, sum(step) FROM ends JOIN whole USING (user_id)
 GROUP BY user_id, balance HAVING sum(step) <> 0 ORDER BY user_id, balance;

-- find_rows: the outbox rows with these numbers.
SELECT o.topic, o.aggregateid, o.payload::text, o.dedupe_key, o.causation_id, o.version
  FROM unnest(%(partitions)s::int[], %(seqs)s::bigint[]) WITH ORDINALITY AS r(partition, seq, n)
  LEFT JOIN LATERAL (
    SELECT * FROM {schema}.pg_outbox WHERE partition = r.partition AND seq = r.seq LIMIT 1) AS o ON true
 ORDER BY r.n;

-- sent_rows: every row that is asked for, in order of the numbers.
SELECT partition, seq, topic, dedupe_key, aggregateid FROM {schema}.pg_outbox
 WHERE %(since)s::timestamptz IS NULL OR created_at >= %(since)s::timestamptz ORDER BY partition, seq;

-- accepted_losses: records that were gone before they were applied and that somebody gave up, newest first.
SELECT topic, partition, from_offset, to_offset, actor, reason
  FROM {schema}.accepted_losses
 WHERE to_offset > from_offset
 ORDER BY accepted_at DESC, topic, partition;
