-- judged: every delivery that the sink has decided on, one way or another.
SELECT (SELECT count(*) FROM {schema}.pg_webhook_inbox)
     + (SELECT count(*) FROM {schema}.redeliveries)
     + (SELECT count(*) FROM {schema}.quarantined_events);
