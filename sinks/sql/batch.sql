-- begin: opens the batch's transaction; each statement sees what was committed before it.
BEGIN ISOLATION LEVEL READ COMMITTED;

-- lock_positions: the fence; the rows stay locked to the end of the transaction.
SELECT partition, epoch, next_offset, next_outbox_seq, next_arrival_seq
  FROM {schema}.sink_offsets
 WHERE topic = %(topic)s AND partition = ANY(%(partitions)s)
 ORDER BY partition
   FOR UPDATE;

-- find_seen: which of these events are in the inbox, and which delivery brought them.
SELECT event_id, source_partition, source_offset, object_id, version
  FROM {schema}.pg_webhook_inbox
 WHERE event_id = ANY(%s);

-- load_deposits: the touched rows; the credit entry is asked for only where the row says that there is one.
SELECT pg_deposit_id, pg_version, our_order_id, our_user_id, reversed_at IS NOT NULL,
       credited_user_at IS NOT NULL,
       CASE WHEN credited_user_at IS NOT NULL THEN
         (SELECT ARRAY[e.user_id, e.amount_minor::text]
            FROM {schema}.pg_user_balance_entries e
           WHERE e.entry_key = 'deposit:' || pg_deposit_id || ':credit')
       END
  FROM {schema}.pg_deposits
 WHERE pg_deposit_id = ANY(%s);

-- load_correlations: to whom the touched deposits belong; a look-up of its own, since a join would scan the index.
SELECT pg_deposit_id, our_order_id, our_user_id
  FROM {schema}.pg_deposit_correlations
 WHERE pg_deposit_id = ANY(%s);

-- load_parked: events of these objects that waited and can go on by now, in order of arrival: a deposit's when its
-- correlation is there, a withdrawal's when its row is.
SELECT * FROM (
  SELECT i.event_id, i.event_type, i.event_raw, i.received_at, i.object_id, i.object_kind, i.version, i.merchant_id,
         i.sequence, i.partition, i.arrival_seq, i.source_partition, i.source_offset, i.key_id, i.origin,
         CASE i.parked_reason WHEN 'correlation' THEN
           (SELECT ARRAY[c.our_order_id, c.our_user_id]
              FROM {schema}.pg_deposit_correlations c
             WHERE c.pg_deposit_id = i.object_id)
         END AS owner,
         CASE i.parked_reason WHEN 'snapshot' THEN
           (SELECT true FROM {schema}.pg_withdrawals w WHERE w.pg_withdrawal_id = i.object_id)
         END AS has_row
    FROM {schema}.pg_webhook_inbox i
   WHERE i.processed_at IS NULL AND i.object_id = ANY(%(objects)s) AND i.partition = ANY(%(partitions)s)
) AS waiting
 WHERE owner IS NOT NULL OR has_row
 ORDER BY arrival_seq, partition
 LIMIT %(limit)s;

-- load_flags: what is known of these claims.
SELECT claim_id, pg_deposit_id, observed_deposit_version, cause, amount_minor, slip_received_at, status_snapshot,
       action_required_snapshot, expected_response_at, raw_flag::text
  FROM {schema}.pg_deposit_overpayment_flags
 WHERE claim_id = ANY(%s);

-- find_quarantined: which of these events were set aside before and wait for somebody.
SELECT DISTINCT event_id
  FROM {schema}.quarantined_events
 WHERE state = 'open' AND event_id = ANY(%s);

-- write_deposits: each touched row once, under the version guard; the count must be that of the rows.
INSERT INTO {schema}.pg_deposits AS d (
  pg_deposit_id, pg_version, status, is_terminal, late_slip_accepted_until, ordered_amount_minor,
  transferred_amount_minor, amount_received_minor, fee_total_minor, credited_amount_minor, fee_breakdown, overpayment,
  balance_transaction_id, clearing_available_at, our_order_id, our_user_id, credited_user_at, reversed_at)
SELECT r.pg_deposit_id, r.pg_version, r.status, r.is_terminal, r.late_slip_accepted_until, r.ordered_amount_minor,
       r.transferred_amount_minor, r.amount_received_minor, r.fee_total_minor, r.credited_amount_minor,
       r.fee_breakdown, r.overpayment, r.balance_transaction_id, r.clearing_available_at, r.our_order_id,
       r.our_user_id, CASE WHEN r.credited THEN now() END, CASE WHEN r.reversed THEN now() END
  FROM jsonb_to_recordset(%s::jsonb) AS r(
         pg_deposit_id text, pg_version bigint, status text, is_terminal boolean,
         late_slip_accepted_until timestamptz, ordered_amount_minor bigint, transferred_amount_minor bigint,
         amount_received_minor bigint, fee_total_minor bigint, credited_amount_minor bigint, fee_breakdown jsonb,
         overpayment jsonb, balance_transaction_id text, clearing_available_at timestamptz, our_order_id text,
         our_user_id text, credited boolean, reversed boolean)
ON CONFLICT (pg_deposit_id) DO UPDATE
   SET pg_version = EXCLUDED.pg_version,
       status = EXCLUDED.status,
       is_terminal = EXCLUDED.is_terminal,
       late_slip_accepted_until = EXCLUDED.late_slip_accepted_until,
       ordered_amount_minor = EXCLUDED.ordered_amount_minor,
       transferred_amount_minor = EXCLUDED.transferred_amount_minor,
       amount_received_minor = EXCLUDED.amount_received_minor,
       fee_total_minor = EXCLUDED.fee_total_minor,
       credited_amount_minor = EXCLUDED.credited_amount_minor,
       fee_breakdown = EXCLUDED.fee_breakdown,
       overpayment = EXCLUDED.overpayment,
       balance_transaction_id = EXCLUDED.balance_transaction_id,
       clearing_available_at = EXCLUDED.clearing_available_at,
       credited_user_at = COALESCE(d.credited_user_at, EXCLUDED.credited_user_at),
       reversed_at = COALESCE(d.reversed_at, EXCLUDED.reversed_at),
       updated_at = now()
 WHERE d.pg_version < EXCLUDED.pg_version;

-- write_flags: claims seen for the first time, in order of their ids; the count must be that of the claims.
INSERT INTO {schema}.pg_deposit_overpayment_flags (
  claim_id, pg_deposit_id, observed_deposit_version, cause, amount_minor, slip_received_at, status_snapshot,
  action_required_snapshot, expected_response_at, raw_flag)
SELECT r.claim_id, r.pg_deposit_id, r.version, r.cause, r.amount_minor, r.slip_received_at, r.status,
       r.action_required, r.expected_response_at, r.raw
  FROM jsonb_to_recordset(%s::jsonb) AS r(
         claim_id text, pg_deposit_id text, version bigint, cause text, amount_minor bigint,
         slip_received_at timestamptz, status text, action_required text, expected_response_at timestamptz, raw jsonb)
 ORDER BY r.claim_id
ON CONFLICT (claim_id) DO NOTHING;

-- write_entries: the balance entries and each user's sum, by user id; gives the balances after them.
WITH entry AS (
  SELECT r.key, r.user_id, r.amount, r.event_id
    FROM jsonb_to_recordset(%s::jsonb) AS r(key text, user_id text, amount bigint, event_id text)
), kept AS (
  INSERT INTO {schema}.pg_user_balance_entries (entry_key, user_id, amount_minor, event_id)
  SELECT key, user_id, amount, event_id FROM entry
)
INSERT INTO {schema}.pg_user_balances AS b (user_id, balance_minor)
SELECT user_id, sum(amount)::bigint FROM entry GROUP BY user_id ORDER BY user_id
ON CONFLICT (user_id) DO UPDATE SET balance_minor = b.balance_minor + EXCLUDED.balance_minor
RETURNING user_id, balance_minor;

-- copy_inbox: the new events.
COPY {schema}.pg_webhook_inbox (
  event_id, event_type, event_raw, received_at, processed_at, parked_reason, object_id, object_kind, version,
  merchant_id, sequence, partition, arrival_seq, source_partition, source_offset, verdict, reason, key_id, origin)
FROM STDIN (FORMAT BINARY);

-- copy_outbox: effects and balance entries, numbered.
COPY {schema}.pg_outbox (
  partition, seq, aggregatetype, aggregateid, type, topic, payload, dedupe_key, causation_id, version, received_at)
FROM STDIN (FORMAT BINARY);

-- note_redeliveries: deliveries of events that were known; the same delivery read again changes nothing.
INSERT INTO {schema}.redeliveries (event_id, source_partition, source_offset, received_at, verdict)
SELECT * FROM unnest(%s::text[], %s::int[], %s::bigint[], %s::timestamptz[], %s::text[])
ON CONFLICT DO NOTHING;

-- finish_parked: events that waited and are applied now; the count must be that of the events.
UPDATE {schema}.pg_webhook_inbox AS i
   SET processed_at = now(), parked_reason = NULL, verdict = r.verdict, reason = r.reason
  FROM unnest(%s::text[], %s::text[], %s::text[]) AS r(event_id, verdict, reason)
 WHERE i.event_id = r.event_id AND i.processed_at IS NULL;

-- drop_parked: events that waited and are set aside now; the count must be that of the events.
DELETE FROM {schema}.pg_webhook_inbox WHERE event_id = ANY(%s) AND processed_at IS NULL;

-- advance: the positions after the batch, while the fence holds; the count must be that of the partitions.
UPDATE {schema}.sink_offsets AS s
   SET next_offset = r.next_offset, next_outbox_seq = r.next_outbox_seq, next_arrival_seq = r.next_arrival_seq
  FROM unnest(%(partitions)s::int[], %(epochs)s::bigint[], %(next_offsets)s::bigint[], %(next_outbox_seqs)s::bigint[],
              %(next_arrival_seqs)s::bigint[]) AS r(partition, epoch, next_offset, next_outbox_seq, next_arrival_seq)
 WHERE s.topic = %(topic)s AND s.partition = r.partition AND s.epoch = r.epoch;

-- notify: wakes the relay; sent once a batch, since each such commit takes a lock that all share.
SELECT pg_notify(%s, '');
