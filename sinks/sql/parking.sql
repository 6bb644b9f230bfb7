-- find_ready: objects with waiting events whose correlation was written since the horizon, and the next horizon.
-- A transaction that is open now has an id at or above the next horizon, so that none is missed whenever it commits.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text,
       ARRAY(SELECT DISTINCT ON (i.object_id) i.object_id
               FROM {schema}.pg_deposit_correlations c
               JOIN {schema}.pg_webhook_inbox i ON i.object_id = c.pg_deposit_id
              WHERE c.noted_xid >= %(horizon)s::xid8 AND i.processed_at IS NULL AND i.parked_reason = 'correlation'
                AND i.partition = ANY(%(partitions)s)
              LIMIT %(limit)s);

-- find_built: withdrawals with events that wait although their row is there; a look-up for each, since a join would
-- read the index of all withdrawals.
SELECT DISTINCT i.object_id
  FROM {schema}.pg_webhook_inbox i
 WHERE i.processed_at IS NULL AND i.parked_reason = 'snapshot' AND i.partition = ANY(%(partitions)s)
   AND (SELECT true FROM {schema}.pg_withdrawals w WHERE w.pg_withdrawal_id = i.object_id)
 LIMIT %(limit)s;

-- count: how many events wait in these partitions by reason, and since when.
SELECT parked_reason, count(*), min(received_at)
  FROM {schema}.pg_webhook_inbox
 WHERE processed_at IS NULL AND partition = ANY(%s)
 GROUP BY parked_reason;
