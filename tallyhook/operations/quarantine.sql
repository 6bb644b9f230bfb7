-- measure: how many rows fit, and the newest of them; rows that come later do not belong to the answer.
SELECT count(*), coalesce(max(id), 0)
  FROM {schema}.quarantined_events
 WHERE id > %(after)s AND id <= %(upto)s
   AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s::bigint[]))
   AND (%(event_ids)s::text[] IS NULL OR event_id = ANY(%(event_ids)s::text[]))
   AND (%(states)s::text[] IS NULL OR state = ANY(%(states)s::text[]))
   AND (%(reason)s::text IS NULL OR reason = %(reason)s::text)
   AND (%(stage)s::text IS NULL OR stage = %(stage)s::text)
   AND (%(event_type)s::text IS NULL OR headers ->> 'ce_type' = %(event_type)s::text)
   AND (%(since)s::timestamptz IS NULL OR at >= %(since)s::timestamptz)
   AND (%(until)s::timestamptz IS NULL OR at < %(until)s::timestamptz);

-- find: a page of the rows that fit, without their bytes, oldest first.
SELECT id, stage, reason, detail, event_id, headers ->> 'ce_type' AS event_type, object_id, source_topic,
       source_partition, source_offset, attempts, at, state, actor, note, octet_length(raw) AS body_bytes
  FROM {schema}.quarantined_events
 WHERE id > %(after)s AND id <= %(upto)s
   AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s::bigint[]))
   AND (%(event_ids)s::text[] IS NULL OR event_id = ANY(%(event_ids)s::text[]))
   AND (%(states)s::text[] IS NULL OR state = ANY(%(states)s::text[]))
   AND (%(reason)s::text IS NULL OR reason = %(reason)s::text)
   AND (%(stage)s::text IS NULL OR stage = %(stage)s::text)
   AND (%(event_type)s::text IS NULL OR headers ->> 'ce_type' = %(event_type)s::text)
   AND (%(since)s::timestamptz IS NULL OR at >= %(since)s::timestamptz)
   AND (%(until)s::timestamptz IS NULL OR at < %(until)s::timestamptz)
 ORDER BY id
 LIMIT %(limit)s;

-- load: bytes and headers of some rows.
SELECT id, raw, headers FROM {schema}.quarantined_events WHERE id = ANY(%s::bigint[]);

-- lock: the rows that an operator wants to close, in order, so that two of them do not cross.
SELECT id, state, actor, note FROM {schema}.quarantined_events WHERE id = ANY(%s::bigint[]) ORDER BY id FOR UPDATE;

-- close: by hand; what the sink closed or somebody else did stays as it is.
UPDATE {schema}.quarantined_events
   SET state = 'discarded', actor = %(actor)s, note = concat_ws('; ', note, %(note)s::text)
 WHERE id = ANY(%(ids)s::bigint[]) AND state = 'open'
RETURNING id;
