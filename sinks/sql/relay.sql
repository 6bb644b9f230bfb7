-- install_shards: fixes the number of shards when the first relay of an installation starts
INSERT INTO {schema}.relay_installation (shards) VALUES (%(shards)s) ON CONFLICT DO NOTHING;

-- installed_shards: the number of shards that was fixed
SELECT shards FROM {schema}.relay_installation;

-- installed_topics: the topics that were made for this installation, with the ids and counts they had then
SELECT topic, topic_id, partitions FROM {schema}.installed_topics;

-- heads: the newest seq of each partition that has rows; one look-up in the primary key a partition
SELECT wanted.partition, head.seq
FROM unnest(%(partitions)s::int[]) AS wanted(partition)
CROSS JOIN LATERAL (
  SELECT seq FROM {schema}.pg_outbox WHERE partition = wanted.partition ORDER BY seq DESC LIMIT 1
) AS head;

-- backlog: the newest seq of each partition that has rows, and the seq that the database knows as sent
SELECT wanted.partition, head.seq, cursor.sent_seq
FROM unnest(%(partitions)s::int[]) AS wanted(partition)
CROSS JOIN LATERAL (
  SELECT seq FROM {schema}.pg_outbox WHERE partition = wanted.partition ORDER BY seq DESC LIMIT 1
) AS head
JOIN {schema}.relay_cursors AS cursor ON cursor.partition = wanted.partition;

-- rows: the rows after one seq and up to another, by partition, in order
SELECT unsent.partition, unsent.seq, unsent.id, unsent.topic, unsent.aggregateid, unsent.payload::text,
       unsent.dedupe_key, unsent.causation_id, unsent.version, unsent.received_at, unsent.created_at
FROM unnest(%(partitions)s::int[], %(after)s::bigint[], %(upto)s::bigint[]) AS wanted(partition, after, upto)
CROSS JOIN LATERAL (
  SELECT * FROM {schema}.pg_outbox
  WHERE partition = wanted.partition AND seq > wanted.after AND seq <= wanted.upto
) AS unsent
ORDER BY unsent.partition, unsent.seq;

-- row_ids: the id of one row of each partition, where it is there
SELECT outbox.partition, outbox.id
FROM unnest(%(partitions)s::int[], %(seqs)s::bigint[]) AS wanted(partition, seq)
JOIN {schema}.pg_outbox AS outbox ON outbox.partition = wanted.partition AND outbox.seq = wanted.seq;

-- cursors: the seq each partition was known to be sent up to
SELECT partition, sent_seq FROM {schema}.relay_cursors WHERE partition = ANY(%(partitions)s::int[]);

-- add_cursors: a row for each partition that has none yet
INSERT INTO {schema}.relay_cursors (partition)
SELECT partition FROM unnest(%(partitions)s::int[]) AS wanted(partition) ORDER BY partition
ON CONFLICT DO NOTHING;

-- lease_holders: seconds until the last lease of another owner ends; no row when the shard is free
SELECT extract(epoch FROM max(lease_until) - clock_timestamp())::float8
FROM {schema}.relay_cursors
WHERE partition = ANY(%(partitions)s::int[]) AND owner IS DISTINCT FROM %(owner)s AND lease_until > clock_timestamp()
HAVING count(*) > 0;

-- lock_cursors: locks the rows of a shard in one order, so that two claimants cannot deadlock
SELECT partition FROM {schema}.relay_cursors WHERE partition = ANY(%(partitions)s::int[]) ORDER BY partition FOR UPDATE;

-- take_lease: makes this relay the owner; only with the rows locked and no other holder
UPDATE {schema}.relay_cursors
SET owner = %(owner)s, lease_until = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
WHERE partition = ANY(%(partitions)s::int[]);

-- renew_lease: prolongs the lease of an owner and notes how far it got; fewer rows than partitions: the lease is lost
UPDATE {schema}.relay_cursors AS cursor
SET lease_until = clock_timestamp() + make_interval(secs => %(lease_seconds)s),
    sent_seq = greatest(cursor.sent_seq, sent.seq)
FROM unnest(%(partitions)s::int[], %(seqs)s::bigint[]) AS sent(partition, seq)
WHERE cursor.partition = sent.partition AND cursor.owner = %(owner)s;

-- release_lease: lets the next relay start at once, and notes how far this one got
UPDATE {schema}.relay_cursors AS cursor
SET owner = NULL, lease_until = NULL, sent_seq = greatest(cursor.sent_seq, sent.seq)
FROM unnest(%(partitions)s::int[], %(seqs)s::bigint[]) AS sent(partition, seq)
WHERE cursor.partition = sent.partition AND cursor.owner = %(owner)s;

-- prune: deletes the oldest rows of a partition that are sent and old enough; never the last row sent, nor one after it
DELETE FROM {schema}.pg_outbox
WHERE partition = %(partition)s AND seq IN (
  SELECT oldest.seq
  FROM (
    SELECT outbox.seq, outbox.created_at
    FROM {schema}.pg_outbox AS outbox
    JOIN {schema}.relay_cursors AS cursor ON cursor.partition = outbox.partition
    WHERE outbox.partition = %(partition)s AND outbox.seq < cursor.sent_seq AND cursor.owner = %(owner)s
    ORDER BY outbox.seq
    LIMIT %(rows)s
  ) AS oldest
  WHERE oldest.created_at < clock_timestamp() - make_interval(secs => %(retention_seconds)s)
);
