-- events: the object's events as the sink recorded them, in the order of their arrival.
SELECT event_id, event_type, version, sequence, received_at, processed_at, parked_reason, verdict, reason, key_id,
       origin, source_partition, source_offset, count(*) OVER () AS total,
       CASE WHEN event_type = 'withdrawal.filled' THEN event_raw END AS filled_raw
  FROM {schema}.pg_webhook_inbox
 WHERE object_id = %(object_id)s ORDER BY arrival_seq, partition LIMIT %(limit)s;

-- redeliveries: the later deliveries of these events, in order.
SELECT event_id, received_at, verdict, source_partition, source_offset, count(*) OVER () AS total
  FROM {schema}.redeliveries WHERE event_id = ANY(%(event_ids)s)
 ORDER BY source_partition, source_offset LIMIT %(limit)s;

-- quarantined: deliveries of the object that were set aside, closed ones too.
SELECT event_id, headers ->> 'ce_type' AS event_type, headers ->> 'ce_version' AS version,
       headers ->> 'ce_sequence' AS sequence, headers ->> 'ce_origin' AS origin, headers ->> 'ce_keyid' AS key_id,
       stage, reason, detail, source_topic, source_partition, source_offset, attempts, at, state, actor, note,
       count(*) OVER () AS total
  FROM {schema}.quarantined_events
 WHERE object_id = %(object_id)s ORDER BY id LIMIT %(limit)s;

-- effects: those with one of these keys, found by the index of the keys.
SELECT o.topic, o.dedupe_key, o.partition, o.seq, o.payload, o.causation_id, o.version,
       coalesce(c.sent_seq >= o.seq, false) AS sent
  FROM {schema}.pg_outbox o LEFT JOIN {schema}.relay_cursors c ON c.partition = o.partition
 WHERE o.dedupe_key = ANY(%(keys)s) AND o.aggregateid = %(object_id)s
 ORDER BY o.partition, o.seq;
