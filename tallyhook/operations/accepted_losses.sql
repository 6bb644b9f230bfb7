-- positions: the stored positions of a topic, each with whether its owner's session is alive.
SELECT s.partition, s.topic_id, s.next_offset,
       EXISTS (SELECT FROM pg_stat_activity a
                WHERE a.pid = s.owner_pid AND a.application_name = 'tallyhook-sink') AS owner_lives
  FROM {schema}.sink_offsets s
 WHERE s.topic = %(topic)s;

-- wait_at_most: bounds the wait for a worker's transaction, within this transaction.
SELECT set_config('lock_timeout', %s, true);

-- claim: takes the partition from whoever has it: the epoch rises, so that a former owner's next batch is refused.
INSERT INTO {schema}.sink_offsets AS s (topic, topic_id, partition, next_offset, epoch)
VALUES (%(topic)s, %(topic_id)s, %(partition)s, 0, 1)
ON CONFLICT (topic, partition) DO UPDATE SET epoch = s.epoch + 1, owner_pid = NULL
RETURNING s.topic_id, s.epoch, s.next_offset;

-- move: sets the position of the partition that was claimed in this transaction.
UPDATE {schema}.sink_offsets SET next_offset = %(to_offset)s
 WHERE topic = %(topic)s AND partition = %(partition)s AND epoch = %(epoch)s;

-- note: keeps who gave what up, and why.
INSERT INTO {schema}.accepted_losses (
  topic, topic_id, partition, epoch, from_offset, to_offset, low_offset, high_offset, actor, reason)
VALUES (%(topic)s, %(topic_id)s, %(partition)s, %(epoch)s, %(from_offset)s, %(to_offset)s, %(low)s, %(high)s,
        %(actor)s, %(reason)s)
RETURNING accepted_at;
