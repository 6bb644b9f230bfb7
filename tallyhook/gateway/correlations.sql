-- write: what the merchant's own service knows of its deposits; known ones stay as they are.
INSERT INTO {schema}.pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)
SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])
ON CONFLICT (pg_deposit_id) DO NOTHING;
