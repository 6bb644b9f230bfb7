-- insert: correlations seen for the first time; known ones stay as they are.
INSERT INTO {schema}.pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)
SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])
ON CONFLICT DO NOTHING;

-- find: what is stored for these deposits.
SELECT pg_deposit_id, merchant_reference, our_order_id, our_user_id
  FROM {schema}.pg_deposit_correlations
 WHERE pg_deposit_id = ANY(%s);
