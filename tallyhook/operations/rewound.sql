-- begin_look: one view of the outbox for everything that is held against the topics.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- begin_mend: the same, and the numbers are put right in it.
BEGIN ISOLATION LEVEL REPEATABLE READ;

-- one_at_a_time: a second one waits here until the first has ended.
SELECT pg_advisory_xact_lock(%s);

-- wait_at_most: bounds the wait for another session's locks, within this transaction.
SELECT set_config('lock_timeout', %s, true);

-- installed_topics: the topics that were made for this installation, with the ids and counts they had then.
SELECT topic, topic_id, partitions FROM {schema}.installed_topics;

-- row_ids: the id of one row of each partition, where it is there.
SELECT outbox.partition, outbox.id
  FROM unnest(%(partitions)s::int[], %(seqs)s::bigint[]) AS wanted(partition, seq)
  JOIN {schema}.pg_outbox AS outbox ON outbox.partition = wanted.partition AND outbox.seq = wanted.seq;

-- kept: rows of a range of numbers, each with what tells whether it is the one that was sent.
SELECT seq, dedupe_key, created_at FROM {schema}.pg_outbox
 WHERE partition = %(partition)s AND seq BETWEEN %(first)s AND %(last)s;

-- count_behind: how many rows there are behind a number.
SELECT count(*) FROM {schema}.pg_outbox WHERE partition = %(partition)s AND seq > %(seq)s;

-- behind: the rows behind a number, in order.
SELECT seq, topic, dedupe_key, aggregateid, causation_id, version::text, payload::text, created_at
  FROM {schema}.pg_outbox WHERE partition = %(partition)s AND seq > %(seq)s ORDER BY seq;

-- events: where the events of effects that are missing stand now.
SELECT wanted.event_id, i.event_id IS NOT NULL, i.parked_reason,
       EXISTS (SELECT FROM {schema}.quarantined_events q WHERE q.event_id = wanted.event_id AND q.state = 'open')
  FROM unnest(%s::text[]) AS wanted(event_id)
  LEFT JOIN {schema}.pg_webhook_inbox AS i USING (event_id);

-- shards: how many relays share the partitions.
SELECT shards FROM {schema}.relay_installation;

-- leases: partitions that a relay holds now.
SELECT partition FROM {schema}.relay_cursors WHERE lease_until > clock_timestamp();

-- entries_elsewhere: balance entries of some users in partitions that lost nothing of what was sent, made since then.
SELECT partition, seq, payload ->> 'user_id', payload::text
  FROM {schema}.pg_outbox
 WHERE topic = 'balance_entry' AND NOT partition = ANY(%(rewound)s) AND created_at >= %(since)s
   AND payload ->> 'user_id' = ANY(%(users)s)
 ORDER BY created_at, partition, seq;

-- balances: what some users have now.
SELECT user_id, balance_minor FROM {schema}.pg_user_balances WHERE user_id = ANY(%s);

-- step_aside: takes numbers away from rows that get others; the count must be that of the rows.
UPDATE {schema}.pg_outbox SET seq = -1 - seq WHERE partition = %(partition)s AND seq = ANY(%(seqs)s::bigint[]);

-- renumber: gives rows that stepped aside their new numbers; the count must be that of the rows.
UPDATE {schema}.pg_outbox AS o SET seq = r.new
  FROM unnest(%(old)s::bigint[], %(new)s::bigint[]) AS r(old, new)
 WHERE o.partition = %(partition)s AND o.seq = -1 - r.old;

-- identify: gives the row that was sent last the id that the relay's progress names; the count must be 1.
UPDATE {schema}.pg_outbox SET id = %(id)s WHERE partition = %(partition)s AND seq = %(seq)s;

-- announce: what balance entries say; the count must be that of the rows.
UPDATE {schema}.pg_outbox AS o SET payload = r.payload::jsonb
  FROM unnest(%(partitions)s::int[], %(seqs)s::bigint[], %(payloads)s::text[]) AS r(partition, seq, payload)
 WHERE o.partition = r.partition AND o.seq = r.seq AND o.topic = 'balance_entry';
