-- take_lease: makes this process the keeper, or lets it stay so; nothing when another one is, or changes gaps just now.
UPDATE {schema}.sequence_keeper AS k
   SET owner = %(owner)s, lease_until = now() + make_interval(secs => %(seconds)s)
 WHERE k.single IN (SELECT single FROM {schema}.sequence_keeper
                     WHERE owner = %(owner)s OR lease_until < now()
                       FOR UPDATE SKIP LOCKED);

-- end_lease: lets another process take over at once.
UPDATE {schema}.sequence_keeper SET lease_until = '-infinity' WHERE owner = %s;

-- bound_transaction: ends the transaction of a keeper that is frozen, so that another one can go on.
SELECT set_config('idle_in_transaction_session_timeout', %s, false);

-- begin_inbox: a cursor for each partition.
INSERT INTO {schema}.sequence_sources (source, partition, next_number)
SELECT 'inbox', p, 0 FROM generate_series(0, %s - 1) AS p
ON CONFLICT DO NOTHING;

-- read_inbox: numbers behind the cursors by partition and merchant, in the order of their receipt; arrival numbers are
-- given in the order of the commits, so that nothing appears later below one that was seen.
SELECT page.partition, page.merchant_id, max(page.arrival_seq) + 1, count(*),
       array_agg(page.sequence ORDER BY page.received_at, page.arrival_seq), min(page.received_at), max(page.received_at)
  FROM {schema}.sequence_sources s
 CROSS JOIN LATERAL (SELECT i.partition, i.arrival_seq, i.merchant_id, i.sequence, i.received_at
                       FROM {schema}.pg_webhook_inbox i
                      WHERE i.partition = s.partition AND i.arrival_seq >= s.next_number
                      ORDER BY i.arrival_seq
                      LIMIT %s) AS page
 WHERE s.source = 'inbox'
 GROUP BY page.partition, page.merchant_id;

-- read_horizon: from which transaction on set-aside events are to be read, and the oldest one that is open now: what
-- has a lower id is committed or gone for good. A horizon of the future is that of another server's data.
SELECT coalesce((SELECT next_number FROM {schema}.sequence_sources
                  WHERE source = 'set-aside' AND partition = 0
                    AND next_number <= pg_snapshot_xmin(pg_current_snapshot())::text::bigint), 0),
       pg_snapshot_xmin(pg_current_snapshot())::text::bigint;

-- read_set_aside: a page of set-aside events with the number and the merchant that the door read. What was never at the
-- door counts for nobody, and what came to a wrong merchant's endpoint only where that merchant is known.
SELECT q.noted_xid::text::bigint, q.id, q.headers ->> 'ce_merchant', q.headers ->> 'ce_sequence', q.at
  FROM {schema}.quarantined_events q
 WHERE q.noted_xid >= %(horizon)s::text::xid8
   AND (q.noted_xid, q.id) > (%(after_xid)s::text::xid8, %(after_id)s)
   AND q.reason <> 'record_headers' AND q.headers ? 'ce_merchant' AND q.headers ? 'ce_sequence'
   AND (q.reason <> 'envelope_merchant'
        OR EXISTS (SELECT FROM {schema}.sequence_heads h WHERE h.merchant_id = q.headers ->> 'ce_merchant'))
 ORDER BY q.noted_xid, q.id
 LIMIT %(limit)s;

-- read_positions: the cursors of one source.
SELECT partition, next_number FROM {schema}.sequence_sources WHERE source = %s;

-- save_positions: the cursors of one source after what was read.
INSERT INTO {schema}.sequence_sources AS s (source, partition, next_number)
SELECT %(source)s, r.partition, r.next_number
  FROM unnest(%(partitions)s::int[], %(numbers)s::bigint[]) AS r(partition, next_number)
ON CONFLICT (source, partition) DO UPDATE SET next_number = EXCLUDED.next_number;

-- find_head: the first and the highest number of a merchant.
SELECT first_seen, highest_seen FROM {schema}.sequence_heads WHERE merchant_id = %s;

-- save_head: the head after what was read.
INSERT INTO {schema}.sequence_heads AS h (merchant_id, first_seen, highest_seen)
VALUES (%(merchant)s, %(first)s, %(highest)s)
ON CONFLICT (merchant_id) DO UPDATE SET highest_seen = EXCLUDED.highest_seen, updated_at = now();

-- find_touched: the gaps that hold one of these numbers, whatever their state: one look into the index a number.
SELECT DISTINCT g.first_sequence, g.last_sequence
  FROM unnest(%(numbers)s::bigint[]) AS n(number)
 CROSS JOIN LATERAL (SELECT first_sequence, last_sequence FROM {schema}.sequence_gaps
                      WHERE merchant_id = %(merchant)s AND first_sequence <= n.number
                      ORDER BY first_sequence DESC
                      LIMIT 1) AS g
 WHERE g.last_sequence >= n.number
 ORDER BY g.first_sequence;

-- split: what is left of gaps behind a number that was seen, with the history of the gap (origin is its first number).
INSERT INTO {schema}.sequence_gaps (
  merchant_id, first_sequence, last_sequence, opened_at, state, closed_at, actor, reason)
SELECT g.merchant_id, r.first, r.last, g.opened_at, g.state, g.closed_at, g.actor, g.reason
  FROM unnest(%(origins)s::bigint[], %(firsts)s::bigint[], %(lasts)s::bigint[]) AS r(origin, first, last)
  JOIN {schema}.sequence_gaps g ON g.merchant_id = %(merchant)s AND g.first_sequence = r.origin;

-- shorten: what is left of gaps before the first number that was seen.
UPDATE {schema}.sequence_gaps AS g SET last_sequence = r.last
  FROM unnest(%(firsts)s::bigint[], %(lasts)s::bigint[]) AS r(first, last)
 WHERE g.merchant_id = %(merchant)s AND g.first_sequence = r.first;

-- close: gaps whose first number was seen; what is left of them has its own rows.
DELETE FROM {schema}.sequence_gaps AS g
 USING unnest(%(firsts)s::bigint[]) AS r(first)
 WHERE g.merchant_id = %(merchant)s AND g.first_sequence = r.first;

-- open: new gaps.
INSERT INTO {schema}.sequence_gaps (merchant_id, first_sequence, last_sequence, opened_at)
SELECT %(merchant)s, r.first, r.last, least(now(), %(opened_at)s::timestamptz)
  FROM unnest(%(firsts)s::bigint[], %(lasts)s::bigint[]) AS r(first, last);

-- measure: how many numbers are missing, and for how many seconds the longest of them.
SELECT coalesce(sum(last_sequence::numeric - first_sequence + 1), 0)::double precision,
       coalesce(extract(epoch FROM now() - min(opened_at)), 0)::double precision
  FROM {schema}.sequence_gaps WHERE state = 'open';
