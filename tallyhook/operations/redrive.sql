-- begin_attempt: counted before the bytes go out, so that the sink's answer never comes first. A row that was discarded
-- is open again. The ids that the bytes name are noted, because the sink closes a row by its event's id.
UPDATE {schema}.quarantined_events AS q
   SET attempts = q.attempts + 1,
       event_id = r.event_id,
       object_id = r.object_id,
       note = CASE WHEN q.state = 'discarded' THEN concat_ws('; ', q.note, 'opened again to be sent again') ELSE q.note END,
       state = 'open'
  FROM unnest(%(ids)s::bigint[], %(event_ids)s::text[], %(object_ids)s::text[]) AS r(id, event_id, object_id)
 WHERE q.id = r.id AND q.state = ANY(%(states)s::text[])
RETURNING q.id;

-- in_inbox: which of these events were applied or are parked, and what they were about.
SELECT event_id, object_id, version FROM {schema}.pg_webhook_inbox WHERE event_id = ANY(%s::text[]);

-- still_waiting: which of these rows are in a state to be sent.
SELECT id FROM {schema}.quarantined_events WHERE id = ANY(%(ids)s::bigint[]) AND state = ANY(%(states)s::text[]);
