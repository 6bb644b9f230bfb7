-- inbox: the event as the sink recorded it at its first delivery.
SELECT i.event_id, i.event_type, i.object_id, i.object_kind, i.version, i.sequence, i.merchant_id, i.received_at,
       i.processed_at, i.parked_reason, i.verdict, i.reason, i.key_id, i.origin, i.source_partition, i.source_offset
  FROM {schema}.pg_webhook_inbox i WHERE i.event_id = %(event_id)s;

-- redeliveries: every delivery after the first one, in the order of their arrival.
SELECT received_at, verdict, source_partition, source_offset
  FROM {schema}.redeliveries WHERE event_id = %(event_id)s ORDER BY source_partition, source_offset;

-- quarantined: deliveries that were set aside, with the type that their headers name.
SELECT id, stage, reason, detail, object_id, headers ->> 'ce_type' AS event_type, source_topic, source_partition,
       source_offset, attempts, at, state, actor, note
  FROM {schema}.quarantined_events WHERE event_id = %(event_id)s ORDER BY id;

-- effects: what the event caused, and whether it has been sent.
SELECT o.topic, o.dedupe_key, o.partition, o.seq, o.payload, o.created_at, coalesce(c.sent_seq >= o.seq, false) AS sent
  FROM {schema}.pg_outbox o LEFT JOIN {schema}.relay_cursors c ON c.partition = o.partition
 WHERE o.causation_id = %(event_id)s ORDER BY o.partition, o.seq;

-- deposit: the object as it is now.
SELECT status, pg_version, our_order_id, our_user_id, credited_user_at, reversed_at
  FROM {schema}.pg_deposits WHERE pg_deposit_id = %(object_id)s;

-- withdrawal: the object as it is now.
SELECT status, pg_version, our_ref, amount_total_minor, filled_minor, remaining_minor, refunded_minor,
       replacement_withdrawal_id, closed_at, refund_enqueued_at, user_lock_released_at
  FROM {schema}.pg_withdrawals WHERE pg_withdrawal_id = %(object_id)s;

-- transaction: the object as it was recorded; it has no versions.
SELECT type, direction, amount_minor, bucket_from, bucket_to, source_id, created_at
  FROM {schema}.pg_balance_txns WHERE btxn_id = %(object_id)s;
