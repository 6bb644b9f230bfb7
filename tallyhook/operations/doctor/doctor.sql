-- bound: no answer of this transaction may take long.
SELECT set_config('statement_timeout', %s, true);

-- server: what the server guarantees with its settings, as they hold for this role.
SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), current_setting('fsync') = 'on',
       current_setting('full_page_writes') = 'on', current_setting('synchronous_commit'),
       current_setting('synchronous_standby_names'), pg_is_in_recovery(),
       current_setting('default_transaction_read_only') = 'on', current_user::text;

-- connections: how many this role may still open, by the server's bound.
SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
       - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::int;

-- now: the server's clock.
SELECT clock_timestamp();

-- installed_topics: what `tallyhook topics apply` recorded.
SELECT topic, topic_id, partitions FROM {schema}.installed_topics;

-- positions: up to where each partition of a topic was applied.
SELECT topic, topic_id, partition, next_offset FROM {schema}.sink_offsets ORDER BY topic, partition;

-- shards: how many relays share the partitions; no row before the first one started.
SELECT shards FROM {schema}.relay_installation;

-- cursors: up to where rows are known to be sent.
SELECT partition, sent_seq FROM {schema}.relay_cursors ORDER BY partition;

-- unsent: partitions with rows that nobody sends: no relay has a lease on them.
SELECT c.partition, head.seq - c.sent_seq
  FROM {schema}.relay_cursors c
 CROSS JOIN LATERAL (SELECT o.seq FROM {schema}.pg_outbox o
                      WHERE o.partition = c.partition ORDER BY o.seq DESC LIMIT 1) AS head
 WHERE head.seq > c.sent_seq AND (c.lease_until IS NULL OR c.lease_until < now())
 ORDER BY c.partition;

-- sequences: whether numbers were ever kept, and whether a sink keeps them now.
SELECT EXISTS (SELECT FROM {schema}.sequence_sources), lease_until > now() FROM {schema}.sequence_keeper;

-- tables: those of some tables that exist.
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = %(schema)s AND c.relname = ANY(%(tables)s) AND c.relkind IN ('r', 'p');

-- privileges: those of some privileges that this role lacks; tables by their quoted names. What another role has that
-- may log in and was given it, is no business of this one's: each process may have a role of its own.
SELECT wanted.name, wanted.privilege
  FROM unnest(%(names)s::text[], %(privileges)s::text[]) AS wanted(name, privilege)
  JOIN pg_class c ON c.oid = wanted.name::regclass
 WHERE NOT has_table_privilege(wanted.name, wanted.privilege)
   AND NOT EXISTS (SELECT FROM pg_roles r
                    WHERE r.rolcanlogin AND NOT r.rolsuper AND r.oid <> c.relowner
                      AND has_table_privilege(r.oid, c.oid, wanted.privilege))
 ORDER BY wanted.name, wanted.privilege;
