-- wait_at_most: bounds the wait for a former owner's transaction in this session.
SELECT set_config('lock_timeout', %s, false);

-- claim: makes this session the owner of one partition: the epoch rises, so that a former owner's next batch is refused.
INSERT INTO {schema}.sink_offsets AS s (topic, topic_id, partition, next_offset, epoch, owner_pid)
VALUES (%(topic)s, %(topic_id)s, %(partition)s, 0, 1, pg_backend_pid())
ON CONFLICT (topic, partition) DO UPDATE SET epoch = s.epoch + 1, owner_pid = pg_backend_pid()
RETURNING topic_id, epoch, next_offset, next_outbox_seq, next_arrival_seq;

-- find_epochs: how often each partition was claimed, without waiting for its owner.
SELECT partition, epoch FROM {schema}.sink_offsets WHERE topic = %s AND partition = ANY(%s);

-- stored: how often each partition was claimed and up to where it was applied, without waiting for its owner.
SELECT partition, epoch, next_offset FROM {schema}.sink_offsets WHERE topic = %s AND partition = ANY(%s);

-- end_frozen_owner: ends the recorded owner's session if it is a sink's that holds locks on this very table.
SELECT pg_terminate_backend(a.pid)
  FROM {schema}.sink_offsets s
  JOIN pg_stat_activity a ON a.pid = s.owner_pid
 WHERE s.topic = %(topic)s AND s.partition = %(partition)s
   AND a.application_name = 'tallyhook-sink' AND a.pid <> pg_backend_pid()
   AND EXISTS (SELECT FROM pg_locks l
                WHERE l.pid = a.pid AND l.locktype = 'relation' AND l.granted
                  AND l.relation = '{schema}.sink_offsets'::regclass);

-- installed_topic: what `tallyhook topics apply` recorded of one topic.
SELECT topic_id, partitions FROM {schema}.installed_topics WHERE topic = %s;
