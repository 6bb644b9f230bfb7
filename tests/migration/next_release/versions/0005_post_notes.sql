-- What the next release takes away, once the programs of this one are gone.
DROP INDEX {schema}.pg_deposit_correlations_order_idx;
INSERT INTO {schema}.schema_revisions (revision, phase, compatible_from) VALUES ('0005', 'post', '0004');
