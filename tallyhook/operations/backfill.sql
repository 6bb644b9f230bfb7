-- in_inbox: which of these events were applied or are parked.
SELECT event_id FROM {schema}.pg_webhook_inbox WHERE event_id = ANY(%s::text[]);

-- find_begun: where an interrupted backfill goes on.
SELECT next_sequence FROM {schema}.backfills WHERE merchant_id = %s AND since_sequence = %s;

-- save_begun: everything up to this number is published.
INSERT INTO {schema}.backfills AS b (merchant_id, since_sequence, next_sequence)
VALUES (%(merchant)s, %(since)s, %(next)s)
ON CONFLICT (merchant_id, since_sequence) DO UPDATE
   SET next_sequence = EXCLUDED.next_sequence, updated_at = now();

-- forget_begun: it is done, or is to begin anew.
DELETE FROM {schema}.backfills WHERE merchant_id = %s AND since_sequence = %s;
