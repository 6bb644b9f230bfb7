-- outbox: how many rows no relay has sent, and for how many seconds the oldest of them waits; look-ups by key alone.
-- A partition without a cursor has never had a relay: its rows are read by something else, such as Debezium.
SELECT coalesce(sum(head.seq - cursor.sent_seq), 0)::float8,
       coalesce(extract(epoch FROM clock_timestamp() - min(oldest.created_at)), 0)::float8
FROM {schema}.relay_cursors AS cursor
CROSS JOIN LATERAL (
  SELECT seq FROM {schema}.pg_outbox WHERE partition = cursor.partition ORDER BY seq DESC LIMIT 1
) AS head
CROSS JOIN LATERAL (
  SELECT created_at FROM {schema}.pg_outbox
  WHERE partition = cursor.partition AND seq > cursor.sent_seq ORDER BY seq LIMIT 1
) AS oldest;

-- quarantined: how many events wait for somebody.
SELECT count(*) FROM {schema}.quarantined_events WHERE state = 'open';

-- negative_balances: how many users owe. It reads every balance: an index for it would make each credit dearer.
SELECT count(*) FROM {schema}.pg_user_balances WHERE balance_minor < 0;
