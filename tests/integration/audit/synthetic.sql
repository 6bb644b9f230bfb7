-- correlations: each deposit has an order and a user of its own.
INSERT INTO {schema}.pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)
SELECT 'dep_' || n, 'ref_' || n, 'ord_' || n, 'usr_' || n FROM generate_series(0, %(deposits)s - 1) AS n;

-- inbox: four events a deposit: opened, slip received twice, settled.
INSERT INTO {schema}.pg_webhook_inbox (
  event_id, event_type, event_raw, received_at, processed_at, object_id, object_kind, version, merchant_id, sequence,
  partition, arrival_seq, source_partition, source_offset, verdict, reason, key_id, origin)
SELECT 'evt_' || n || '_' || v, 'deposit.' || status,
       '{{"id":"evt_' || n || '_' || v || '","object":"event","type":"deposit.' || status
         || '","livemode":true,"created_at":"2026-03-02T10:04:41Z","sequence":' || n * 4 + v
         || ',"account":{{"merchant_id":"mer_1"}},"data":{{"object":{{"id":"dep_' || n
         || '","object":"deposit_order","version":' || v || ',"status":"' || status || '","metadata":{{"note":"'
         || repeat('x', 600) || '"}}'
         || CASE WHEN v = 4 THEN ',"ordered_amount_minor":10000,"transferred_amount_minor":10000,'
                 || '"amount_received_minor":10000,"fee_total_minor":150,"credited_amount_minor":9850' ELSE '' END
         || '}}}}}}',
       at, at, 'dep_' || n, 'deposit_order', v, 'mer_1', n * 4 + v, n %% %(partitions)s,
       n / %(partitions)s * 4 + v - 1, n %% %(partitions)s, n / %(partitions)s * 4 + v - 1, 'advanced', NULL, 'k1',
       'webhook'
  FROM (SELECT n::bigint, v, (ARRAY['open', 'slip_received', 'slip_received', 'settled'])[v] AS status,
               now() - %(seconds)s * interval '1 second' * (1 - n::float8 / %(deposits)s) AS at
          FROM generate_series(0, %(deposits)s - 1) AS n, generate_series(1, 4) AS v) AS e
 ORDER BY n, v;

-- deposits: as the last event left them.
INSERT INTO {schema}.pg_deposits (
  pg_deposit_id, pg_version, status, ordered_amount_minor, transferred_amount_minor, amount_received_minor,
  fee_total_minor, credited_amount_minor, our_order_id, our_user_id, credited_user_at, updated_at)
SELECT i.object_id, i.version, 'settled', 10000, 10000, 10000, 150, 9850, c.our_order_id, c.our_user_id,
       i.processed_at, i.processed_at
  FROM {schema}.pg_webhook_inbox i JOIN {schema}.pg_deposit_correlations c ON c.pg_deposit_id = i.object_id
 WHERE i.version = 4;

-- entries: one credit a deposit.
INSERT INTO {schema}.pg_user_balance_entries (entry_key, user_id, amount_minor, event_id, created_at)
SELECT 'deposit:' || i.object_id || ':credit', c.our_user_id, 10000, i.event_id, i.processed_at
  FROM {schema}.pg_webhook_inbox i JOIN {schema}.pg_deposit_correlations c ON c.pg_deposit_id = i.object_id
 WHERE i.version = 4;

-- balances: what the entries sum up to.
INSERT INTO {schema}.pg_user_balances (user_id, balance_minor)
SELECT user_id, amount_minor FROM {schema}.pg_user_balance_entries;

-- outbox: three effects that show a status, the balance entry, and the goods.
INSERT INTO {schema}.pg_outbox (
  partition, seq, aggregatetype, aggregateid, type, topic, payload, dedupe_key, causation_id, version, received_at,
  created_at)
SELECT i.partition, i.arrival_seq / 4 * 5 + e.place, 'deposit', i.object_id, e.topic, e.topic, e.payload, e.key,
       i.event_id, i.version, i.received_at, i.processed_at
  FROM {schema}.pg_webhook_inbox i
  JOIN {schema}.pg_deposit_correlations c ON c.pg_deposit_id = i.object_id
 CROSS JOIN LATERAL (
   SELECT i.version - 1 AS place, 'update_order_status' AS topic, i.event_id || ':update_order_status' AS key,
          jsonb_build_object('order_id', c.our_order_id, 'status',
                             CASE WHEN i.version = 1 THEN 'open' ELSE 'slip_received' END) AS payload
    WHERE i.version < 4
    UNION ALL
   SELECT 3, 'balance_entry', 'deposit:' || i.object_id || ':credit',
          jsonb_build_object('entry_key', 'deposit:' || i.object_id || ':credit', 'user_id', c.our_user_id,
                             'amount_minor', 10000, 'balance_after_minor', 10000, 'pg_deposit_id', i.object_id,
                             'our_order_id', c.our_order_id)
    WHERE i.version = 4
    UNION ALL
   SELECT 4, 'release_goods', 'deposit:' || i.object_id || ':release_goods',
          jsonb_build_object('order_id', c.our_order_id, 'partial', false, 'received', 10000, 'ordered', 10000)
    WHERE i.version = 4) AS e;

-- positions: the sink has applied everything.
INSERT INTO {schema}.sink_offsets (topic, topic_id, partition, next_offset, next_outbox_seq, next_arrival_seq)
SELECT %(topic)s, 'synthetic', i.partition, i.next, o.next, i.next
  FROM (SELECT partition, max(arrival_seq) + 1 AS next FROM {schema}.pg_webhook_inbox GROUP BY 1) AS i
  JOIN (SELECT partition, max(seq) + 1 AS next FROM {schema}.pg_outbox GROUP BY 1) AS o USING (partition);

-- events: every event as the topics have it.
SELECT event_id, event_type, event_raw, received_at, object_id, version, sequence, partition, source_offset
  FROM {schema}.pg_webhook_inbox ORDER BY partition, arrival_seq;

-- effects: every row as the relay reads it.
SELECT partition, seq, id, topic, aggregateid, payload::text, dedupe_key, causation_id, version, received_at, created_at
  FROM {schema}.pg_outbox ORDER BY partition, seq;

-- last: the rows that the relay's progress names.
SELECT DISTINCT ON (partition) partition, seq, id FROM {schema}.pg_outbox ORDER BY partition, seq DESC;
