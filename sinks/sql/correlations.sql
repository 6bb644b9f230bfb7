-- insert: correlations seen for the first time; known ones stay as they are.
INSERT INTO {schema}.pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)
SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])
ON CONFLICT DO NOTHING;

-- find: what is stored for these deposits.
SELECT pg_deposit_id, merchant_reference, our_order_id, our_user_id
  FROM {schema}.pg_deposit_correlations
 WHERE pg_deposit_id = ANY(%s);

-- positions: up to where each partition of the topic was inserted, while it is the topic that was installed.
SELECT s.partition, s.next_offset
  FROM {schema}.sink_offsets AS s JOIN {schema}.installed_topics AS i ON i.topic = s.topic AND i.topic_id = s.topic_id
 WHERE s.topic = %s;

-- note: how far each partition was inserted; nothing where the topic was never recorded.
INSERT INTO {schema}.sink_offsets AS s (topic, topic_id, partition, next_offset)
SELECT %s, i.topic_id, r.partition, r.next_offset
  FROM unnest(%s::int[], %s::bigint[]) AS r(partition, next_offset)
  JOIN {schema}.installed_topics AS i ON i.topic = %s
ON CONFLICT (topic, partition) DO UPDATE
   SET topic_id = EXCLUDED.topic_id, next_offset = EXCLUDED.next_offset;
