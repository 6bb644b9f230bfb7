-- add: sets events aside with their bytes; the same delivery read again changes nothing.
-- An event that was sent again by `redrive` and is set aside again closes its earlier rows: the new one is open.
-- `redrive` has counted its own attempt; every other delivery counts one more here.
WITH added AS (
  INSERT INTO {schema}.quarantined_events (
    stage, reason, detail, event_id, object_id, raw, headers, source_topic, source_partition, source_offset, state,
    note, attempts)
  SELECT r.stage, r.reason, r.detail, r.event_id, r.object_id, r.raw, r.headers, r.topic, r.partition, r.position,
         CASE WHEN r.applied THEN 'redriven' ELSE 'open' END, CASE WHEN r.applied THEN 'applied' END,
         GREATEST(1, COALESCE((SELECT max(q.attempts) FROM {schema}.quarantined_events q WHERE q.event_id = r.event_id), 0)
                     + (r.headers ->> 'ce_origin' IS DISTINCT FROM 'redrive')::int)
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bytea[], %s::jsonb[], %s::text[],
                %s::int[], %s::bigint[], %s::boolean[])
         AS r(stage, reason, detail, event_id, object_id, raw, headers, topic, partition, position, applied)
  ON CONFLICT ON CONSTRAINT quarantined_events_source_uk DO NOTHING
  RETURNING event_id, object_id, headers ->> 'ce_origin' AS origin
)
UPDATE {schema}.quarantined_events AS q
   SET state = 'redriven', note = concat_ws('; ', q.note, 'sent again and set aside again')
  FROM added
 WHERE added.origin = 'redrive' AND q.event_id = added.event_id AND q.state = 'open'
   AND (q.object_id IS NULL OR q.object_id = added.object_id);

-- resolve: events that were set aside once and are applied now; the same id of another object is another matter.
UPDATE {schema}.quarantined_events AS q
   SET state = 'redriven', note = concat_ws('; ', q.note, 'applied')
  FROM unnest(%s::text[], %s::text[]) AS r(event_id, object_id)
 WHERE q.state = 'open' AND q.event_id = r.event_id AND (q.object_id IS NULL OR q.object_id = r.object_id);
