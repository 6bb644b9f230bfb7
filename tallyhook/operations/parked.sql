-- measure: how many events wait, and how many of them too long.
SELECT count(*), count(*) FILTER (WHERE received_at < %(overdue_before)s)
  FROM {schema}.pg_webhook_inbox
 WHERE processed_at IS NULL
   AND (%(before)s::timestamptz IS NULL OR received_at < %(before)s::timestamptz)
   AND (%(reason)s::text IS NULL OR parked_reason = %(reason)s::text);

-- find: those that wait longest.
SELECT event_id, event_type, object_id, object_kind, version, sequence, parked_reason, received_at
  FROM {schema}.pg_webhook_inbox
 WHERE processed_at IS NULL
   AND (%(before)s::timestamptz IS NULL OR received_at < %(before)s::timestamptz)
   AND (%(reason)s::text IS NULL OR parked_reason = %(reason)s::text)
 ORDER BY received_at, event_id
 LIMIT %(limit)s;
