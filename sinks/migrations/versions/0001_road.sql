-- The tables of the road: inbox, deposits, balances, outbox, positions and quarantine.
-- {schema} is the installation's schema; {generated} is VIRTUAL on PostgreSQL 18 and STORED below.

-- Transactional inbox. A parked event has processed_at IS NULL and a parked_reason; a quarantined one has no row here.
CREATE TABLE {schema}.pg_webhook_inbox (
  event_id         text PRIMARY KEY,
  event_type       text NOT NULL,
  event_raw        text NOT NULL,
  event            jsonb GENERATED ALWAYS AS (event_raw::jsonb) {generated},
  received_at      timestamptz NOT NULL,
  processed_at     timestamptz,
  parked_reason    text CHECK (parked_reason IN ('correlation', 'snapshot')),
  object_id        text NOT NULL,
  object_kind      text NOT NULL,
  version          bigint,
  merchant_id      text NOT NULL,
  sequence         bigint NOT NULL,
  partition        integer NOT NULL,
  arrival_seq      bigint NOT NULL,
  source_partition integer NOT NULL,
  source_offset    bigint NOT NULL,
  verdict          text NOT NULL CHECK (verdict IN ('advanced', 'late', 'redelivered', 'immutable', 'parked')),
  reason           text,
  key_id           text NOT NULL,
  origin           text NOT NULL CHECK (origin IN ('webhook', 'backfill', 'redrive')),
  CONSTRAINT pg_webhook_inbox_parked_ck CHECK ((processed_at IS NULL) = (parked_reason IS NOT NULL)),
  CONSTRAINT pg_webhook_inbox_arrival_uk UNIQUE (partition, arrival_seq)
);
CREATE INDEX pg_webhook_inbox_received_idx ON {schema}.pg_webhook_inbox (received_at);
CREATE INDEX pg_webhook_inbox_object_idx ON {schema}.pg_webhook_inbox (object_id);
CREATE INDEX pg_webhook_inbox_parked_idx ON {schema}.pg_webhook_inbox (object_id, arrival_seq)
  INCLUDE (partition, received_at, parked_reason) WHERE processed_at IS NULL;

-- Every delivery of a known event after the first one.
CREATE TABLE {schema}.redeliveries (
  event_id         text NOT NULL,
  source_partition integer NOT NULL,
  source_offset    bigint NOT NULL,
  received_at      timestamptz NOT NULL,
  verdict          text NOT NULL,
  PRIMARY KEY (event_id, source_partition, source_offset)
);

-- Written by the merchant's own service when its create call returns. noted_xid fills itself: by it the sink finds what
-- was written since it last looked, whatever the order of the commits.
CREATE TABLE {schema}.pg_deposit_correlations (
  pg_deposit_id      text PRIMARY KEY,
  merchant_reference text NOT NULL UNIQUE,
  our_order_id       text NOT NULL,
  our_user_id        text NOT NULL,
  noted_xid          xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX pg_deposit_correlations_noted_idx ON {schema}.pg_deposit_correlations (noted_xid);
CREATE INDEX pg_deposit_correlations_order_idx ON {schema}.pg_deposit_correlations (our_order_id);

-- The mirror of the gateway's deposit orders.
CREATE TABLE {schema}.pg_deposits (
  pg_deposit_id            text PRIMARY KEY,
  pg_version               bigint NOT NULL,
  status                   text NOT NULL,
  is_terminal              boolean,
  late_slip_accepted_until timestamptz,
  ordered_amount_minor     bigint,
  transferred_amount_minor bigint,
  amount_received_minor    bigint,
  fee_total_minor          bigint,
  credited_amount_minor    bigint,
  fee_breakdown            jsonb,
  overpayment              jsonb,
  balance_transaction_id   text,
  clearing_available_at    timestamptz,
  our_order_id             text NOT NULL,
  our_user_id              text NOT NULL,
  credited_user_at         timestamptz,
  reversed_at              timestamptz,
  updated_at               timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT pg_deposit_money_ck CHECK (
    status NOT IN ('settled', 'reversed')
    OR (ordered_amount_minor IS NOT NULL AND transferred_amount_minor IS NOT NULL AND amount_received_minor IS NOT NULL
        AND fee_total_minor IS NOT NULL AND credited_amount_minor IS NOT NULL
        AND ordered_amount_minor > 0 AND transferred_amount_minor > 0 AND amount_received_minor > 0
        AND amount_received_minor = LEAST(transferred_amount_minor, ordered_amount_minor)
        AND fee_total_minor BETWEEN 0 AND amount_received_minor
        AND amount_received_minor - fee_total_minor = credited_amount_minor)
  )
);
CREATE INDEX pg_deposits_order_idx ON {schema}.pg_deposits (our_order_id);

-- Append-only; pg_deposits.overpayment is only the latest projection.
CREATE TABLE {schema}.pg_deposit_overpayment_flags (
  claim_id                 text PRIMARY KEY,
  pg_deposit_id            text NOT NULL REFERENCES {schema}.pg_deposits (pg_deposit_id),
  observed_deposit_version bigint NOT NULL,
  cause                    text NOT NULL CHECK (cause IN ('same_transfer_excess', 'additional_transfer')),
  amount_minor             bigint NOT NULL CHECK (amount_minor > 0),
  slip_received_at         timestamptz NOT NULL,
  status_snapshot          text NOT NULL CHECK (status_snapshot = 'open'),
  action_required_snapshot text NOT NULL CHECK (action_required_snapshot = 'contact_support'),
  expected_response_at     timestamptz,
  raw_flag                 jsonb NOT NULL,
  received_at              timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX pg_deposit_overpayment_flags_deposit_idx
  ON {schema}.pg_deposit_overpayment_flags (pg_deposit_id, observed_deposit_version);
CREATE FUNCTION {schema}.pg_reject_overpayment_flag_mutation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'pg_deposit_overpayment_flags is append-only' USING ERRCODE = '55000';
END $$;
CREATE TRIGGER pg_deposit_overpayment_flags_immutable
  BEFORE UPDATE OR DELETE ON {schema}.pg_deposit_overpayment_flags
  FOR EACH ROW EXECUTE FUNCTION {schema}.pg_reject_overpayment_flag_mutation();

-- Users' balances; may go negative. The entries are append-only and never pruned: they hold "credited once".
CREATE TABLE {schema}.pg_user_balances (
  user_id       text PRIMARY KEY,
  balance_minor bigint NOT NULL
);
CREATE TABLE {schema}.pg_user_balance_entries (
  entry_key    text PRIMARY KEY,
  user_id      text NOT NULL,
  amount_minor bigint NOT NULL CHECK (amount_minor <> 0),
  event_id     text NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX pg_user_balance_entries_user_idx ON {schema}.pg_user_balance_entries (user_id);

-- Transactional outbox, insert-only. seq has no gap within a partition and rises in commit order.
CREATE TABLE {schema}.pg_outbox (
  partition     integer NOT NULL,
  seq           bigint NOT NULL,
  id            uuid NOT NULL DEFAULT gen_random_uuid(),
  aggregatetype text NOT NULL,
  aggregateid   text NOT NULL,
  type          text NOT NULL,
  topic         text NOT NULL,
  payload       jsonb NOT NULL,
  dedupe_key    text NOT NULL UNIQUE,
  causation_id  text NOT NULL,
  version       bigint NOT NULL,
  received_at   timestamptz NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partition, seq)
);

-- The sink's own positions; the row is the fence of its partition.
CREATE TABLE {schema}.sink_offsets (
  topic            text NOT NULL,
  topic_id         text NOT NULL,
  partition        integer NOT NULL,
  next_offset      bigint NOT NULL,
  epoch            bigint NOT NULL DEFAULT 0,
  owner_pid        integer,
  next_outbox_seq  bigint NOT NULL DEFAULT 0,
  next_arrival_seq bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (topic, partition)
);

-- The relay's lease, and a hint for pruning; the truth is the progress topic.
CREATE TABLE {schema}.relay_cursors (
  partition   integer PRIMARY KEY,
  sent_seq    bigint NOT NULL DEFAULT -1,
  owner       text,
  lease_until timestamptz
);

-- How many relays share the partitions: partition p belongs to shard p modulo shards. Fixed when the first one starts.
CREATE TABLE {schema}.relay_installation (
  single       boolean PRIMARY KEY DEFAULT true CHECK (single),
  shards       integer NOT NULL CHECK (shards > 0),
  installed_at timestamptz NOT NULL DEFAULT now()
);

-- What could not be applied, with its bytes: the one place that quarantine and redrive read.
CREATE TABLE {schema}.quarantined_events (
  id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  stage            text NOT NULL CHECK (stage IN ('ingress', 'streams', 'sinks')),
  reason           text NOT NULL,
  detail           text NOT NULL,
  event_id         text,
  object_id        text,
  raw              bytea NOT NULL,
  headers          jsonb NOT NULL,
  source_topic     text NOT NULL,
  source_partition integer NOT NULL,
  source_offset    bigint NOT NULL,
  attempts         integer NOT NULL DEFAULT 1,
  at               timestamptz NOT NULL DEFAULT now(),
  state            text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'redriven', 'discarded')),
  actor            text,
  note             text,
  CONSTRAINT quarantined_events_source_uk UNIQUE (source_topic, source_partition, source_offset)
);
CREATE INDEX quarantined_events_event_idx ON {schema}.quarantined_events (event_id);
CREATE INDEX quarantined_events_unresolved_idx ON {schema}.quarantined_events (event_id) WHERE state = 'open';
CREATE INDEX quarantined_events_object_idx ON {schema}.quarantined_events (object_id);
CREATE INDEX quarantined_events_open_idx ON {schema}.quarantined_events (at) WHERE state = 'open';

-- What `topics apply` found or made: every stage refuses another topic id or partition count.
CREATE TABLE {schema}.installed_topics (
  topic        text PRIMARY KEY,
  topic_id     text NOT NULL,
  partitions   integer NOT NULL,
  installed_at timestamptz NOT NULL DEFAULT now()
);
