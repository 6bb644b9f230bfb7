-- heads: each merchant's first and highest number, or that of one.
SELECT merchant_id, first_seen, highest_seen, updated_at
  FROM {schema}.sequence_heads
 WHERE %(merchant)s::text IS NULL OR merchant_id = %(merchant)s::text
 ORDER BY merchant_id
 LIMIT %(limit)s;

-- is_kept: whether a sink keeps the numbers just now.
SELECT lease_until > now() FROM {schema}.sequence_keeper;

-- measure: ranges and numbers that are missing, those that are late, and those that are lost.
SELECT count(*), coalesce(sum(n), 0)::text,
       count(*) FILTER (WHERE opened_at <= %(late_before)s),
       coalesce(sum(n) FILTER (WHERE opened_at <= %(late_before)s), 0)::text,
       count(*) FILTER (WHERE opened_at <= %(lost_before)s),
       coalesce(sum(n) FILTER (WHERE opened_at <= %(lost_before)s), 0)::text
  FROM (SELECT opened_at, last_sequence::numeric - first_sequence + 1 AS n
          FROM {schema}.sequence_gaps
         WHERE state = 'open' AND (%(merchant)s::text IS NULL OR merchant_id = %(merchant)s::text)) AS g;

-- count: ranges that fit, whatever is shown of them.
SELECT count(*) FROM {schema}.sequence_gaps
 WHERE (%(all)s OR state = 'open') AND (%(merchant)s::text IS NULL OR merchant_id = %(merchant)s::text);

-- find: ranges, oldest first.
SELECT merchant_id, first_sequence, last_sequence, opened_at, state, closed_at, actor, reason
  FROM {schema}.sequence_gaps
 WHERE (%(all)s OR state = 'open') AND (%(merchant)s::text IS NULL OR merchant_id = %(merchant)s::text)
 ORDER BY opened_at, merchant_id, first_sequence
 LIMIT %(limit)s;

-- next_open: the first open range that ends behind a number and begins at or before the ceiling.
SELECT first_sequence, last_sequence
  FROM {schema}.sequence_gaps
 WHERE merchant_id = %(merchant)s AND state = 'open' AND last_sequence > %(after)s::bigint AND first_sequence <= %(ceiling)s::bigint
 ORDER BY first_sequence
 LIMIT 1;

-- open_among: which of these numbers are missing and open.
SELECT n.number
  FROM unnest(%(numbers)s::bigint[]) AS n(number)
 CROSS JOIN LATERAL (SELECT last_sequence, state FROM {schema}.sequence_gaps
                      WHERE merchant_id = %(merchant)s AND first_sequence <= n.number
                      ORDER BY first_sequence DESC
                      LIMIT 1) AS g
 WHERE g.last_sequence >= n.number AND g.state = 'open';

-- count_open: numbers that are missing and open behind a number, up to the ceiling.
SELECT coalesce(sum(least(last_sequence, %(ceiling)s::bigint)::numeric - greatest(first_sequence, %(after)s::bigint + 1) + 1), 0)::text
  FROM {schema}.sequence_gaps
 WHERE merchant_id = %(merchant)s AND state = 'open' AND last_sequence > %(after)s::bigint AND first_sequence <= %(ceiling)s::bigint;

-- open_within: the parts of open ranges that lie within one, without changing them.
SELECT greatest(first_sequence, %(first)s::bigint), least(last_sequence, %(last)s::bigint)
  FROM {schema}.sequence_gaps
 WHERE merchant_id = %(merchant)s AND state = 'open' AND first_sequence <= %(last)s::bigint AND last_sequence >= %(first)s::bigint
 ORDER BY first_sequence
 LIMIT %(limit)s;

-- lock_keeper: no number is taken in until this transaction ends.
SELECT FROM {schema}.sequence_keeper FOR UPDATE;

-- relabel: the parts of open ranges that lie within one get another state, the rest of each stays open.
WITH hit AS (
  DELETE FROM {schema}.sequence_gaps
   WHERE merchant_id = %(merchant)s AND state = 'open' AND first_sequence <= %(last)s::bigint AND last_sequence >= %(first)s::bigint
  RETURNING first_sequence, last_sequence, opened_at
), made AS (
  INSERT INTO {schema}.sequence_gaps (
    merchant_id, first_sequence, last_sequence, opened_at, state, closed_at, actor, reason)
  SELECT %(merchant)s, part.first, part.last, hit.opened_at, part.state,
         CASE WHEN part.state <> 'open' THEN now() END,
         CASE WHEN part.state <> 'open' THEN %(actor)s::text END,
         CASE WHEN part.state <> 'open' THEN %(reason)s::text END
    FROM hit
   CROSS JOIN LATERAL (VALUES (hit.first_sequence, %(first)s::bigint - 1, 'open'),
                              (greatest(hit.first_sequence, %(first)s::bigint), least(hit.last_sequence, %(last)s::bigint), %(state)s),
                              (%(last)s::bigint + 1, hit.last_sequence, 'open')) AS part(first, last, state)
   WHERE part.first <= part.last
  RETURNING first_sequence, last_sequence, state
)
SELECT first_sequence, last_sequence FROM made WHERE state = %(state)s ORDER BY first_sequence;
