-- Withdrawals, balance transactions and the gaps in the gateway's sequence.
-- {schema} is the installation's schema.

-- The mirror of the gateway's withdrawal orders. What is set once, by the first event that has it: amount_total_minor,
-- fee_total_minor, total_locked_minor, max_splits, our_ref. close_enqueued_at outlives a reopening, closed_at does not:
-- it keeps close_withdrawal to once in the order's life.
CREATE TABLE {schema}.pg_withdrawals (
  pg_withdrawal_id          text PRIMARY KEY,
  pg_version                bigint NOT NULL,
  status                    text NOT NULL,
  amount_total_minor        bigint NOT NULL,
  fee_total_minor           bigint,
  total_locked_minor        bigint,
  filled_minor              bigint NOT NULL DEFAULT 0,
  remaining_minor           bigint NOT NULL,
  refunded_minor            bigint,
  fee_recognized_minor      bigint,
  settled_splits            smallint,
  max_splits                smallint,
  our_ref                   text,
  replacement_withdrawal_id text,
  closed_at                 timestamptz,
  close_enqueued_at         timestamptz,
  refund_enqueued_at        timestamptz,
  user_lock_released_at     timestamptz,
  updated_at                timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX pg_withdrawals_ref_idx ON {schema}.pg_withdrawals (our_ref);
-- Events that wait for the row of a withdrawal; it is looked for them now and then among all that wait.
CREATE INDEX pg_webhook_inbox_snapshot_idx ON {schema}.pg_webhook_inbox (partition, object_id)
  WHERE processed_at IS NULL AND parked_reason = 'snapshot';

-- One row a chunk, kept from late events too; for the timeline and for statements, never for sums that decide.
CREATE TABLE {schema}.pg_withdrawal_fills (
  leg_ref                text PRIMARY KEY,
  pg_withdrawal_id       text NOT NULL REFERENCES {schema}.pg_withdrawals (pg_withdrawal_id),
  sequence               smallint,
  amount_minor           bigint NOT NULL,
  fee_recognized_minor   bigint,
  settled_at             timestamptz,
  auto_confirm_at        timestamptz,
  balance_transaction_id text,
  reversed_at            timestamptz,
  received_at            timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX pg_withdrawal_fills_order_idx ON {schema}.pg_withdrawal_fills (pg_withdrawal_id, sequence);

-- Tombstones of chunks that were taken back; one may come before its fill. status_snapshot is that of its own event.
CREATE TABLE {schema}.pg_withdrawal_fill_reversals (
  leg_ref                         text PRIMARY KEY,
  pg_withdrawal_id                text NOT NULL REFERENCES {schema}.pg_withdrawals (pg_withdrawal_id),
  reason_code                     text NOT NULL
    CHECK (reason_code IN ('BANK_RECALL', 'ACCOUNT_FROZEN', 'SLIP_INVALIDATED_AFTER_SETTLEMENT')),
  reverses_balance_transaction_id text NOT NULL,
  reversal_balance_transaction_id text NOT NULL,
  reversed_at                     timestamptz NOT NULL,
  replacement_withdrawal_id       text,
  amount_minor                    bigint NOT NULL,
  status_snapshot                 text NOT NULL,
  effect_enqueued_at              timestamptz,
  CONSTRAINT pg_withdrawal_fill_reversals_reverses_uk UNIQUE (reverses_balance_transaction_id),
  CONSTRAINT pg_withdrawal_fill_reversals_reversal_uk UNIQUE (reversal_balance_transaction_id)
);
CREATE INDEX pg_withdrawal_fill_reversals_order_idx ON {schema}.pg_withdrawal_fill_reversals (pg_withdrawal_id);

-- The gateway's ledger as it told it; immutable. balance_after is its snapshot at that moment, for cross-checks only.
CREATE TABLE {schema}.pg_balance_txns (
  btxn_id       text PRIMARY KEY,
  type          text NOT NULL,
  direction     text NOT NULL,
  amount_minor  bigint NOT NULL,
  bucket_from   text,
  bucket_to     text,
  source_id     text,
  created_at    timestamptz NOT NULL,
  merchant_id   text,
  balance_after jsonb
);
CREATE INDEX pg_balance_txns_source_idx ON {schema}.pg_balance_txns (source_id);
CREATE INDEX pg_balance_txns_created_idx ON {schema}.pg_balance_txns (merchant_id, created_at, btxn_id);

-- Which numbers of the gateway's sequence were seen: a merchant's first and highest one, and what is missing between.
CREATE TABLE {schema}.sequence_heads (
  merchant_id  text PRIMARY KEY,
  first_seen   bigint NOT NULL,
  highest_seen bigint NOT NULL,
  updated_at   timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT sequence_heads_order_ck CHECK (first_seen <= highest_seen)
);
-- A gap is open until its numbers are seen, somebody ignores it, or the gateway does not list them.
CREATE TABLE {schema}.sequence_gaps (
  merchant_id    text NOT NULL,
  first_sequence bigint NOT NULL,
  last_sequence  bigint NOT NULL,
  opened_at      timestamptz NOT NULL,
  state          text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'ignored', 'unlisted')),
  closed_at      timestamptz,
  actor          text,
  reason         text,
  PRIMARY KEY (merchant_id, first_sequence),
  CONSTRAINT sequence_gaps_order_ck CHECK (first_sequence <= last_sequence),
  CONSTRAINT sequence_gaps_closed_ck CHECK ((state = 'open') = (closed_at IS NULL))
);
CREATE INDEX sequence_gaps_open_idx ON {schema}.sequence_gaps (opened_at) WHERE state = 'open';
-- How far each source of seen numbers was read: inbox (next arrival_seq by partition), set-aside (the transaction id
-- from which quarantined_events are read, partition 0), test-events (next offset by partition).
CREATE TABLE {schema}.sequence_sources (
  source      text NOT NULL,
  partition   integer NOT NULL,
  next_number bigint NOT NULL,
  PRIMARY KEY (source, partition)
);
-- Which sink keeps the numbers now; the lease ends by itself. Whoever changes gaps holds the row locked to the commit.
CREATE TABLE {schema}.sequence_keeper (
  single      boolean PRIMARY KEY DEFAULT true CHECK (single),
  owner       text,
  lease_until timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO {schema}.sequence_keeper DEFAULT VALUES;
-- Where an interrupted `backfill` goes on.
CREATE TABLE {schema}.backfills (
  merchant_id    text NOT NULL,
  since_sequence bigint NOT NULL,
  next_sequence  bigint NOT NULL,
  updated_at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (merchant_id, since_sequence)
);

-- Set-aside events that hold a number of the sequence are found by it; xid as in pg_deposit_correlations.
ALTER TABLE {schema}.quarantined_events ADD COLUMN noted_xid xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX quarantined_events_noted_idx ON {schema}.quarantined_events (noted_xid);

-- Support finds the deposits of a user.
CREATE INDEX pg_deposit_correlations_user_idx ON {schema}.pg_deposit_correlations (our_user_id);

-- What was taken over from the handler that stood here before, each row as it was then (the columns of its own table,
-- as to_jsonb gives them): later events went on from there, so whoever recomputes an object begins with it. object_id
-- is the key of the row in its table, owner_id the deposit, withdrawal or user that it belongs to. No effect left for it.
CREATE TABLE {schema}.imported_objects (
  kind        text NOT NULL CHECK (kind IN ('deposit', 'overpayment_flag', 'withdrawal', 'fill', 'reversal',
                                            'transaction', 'balance')),
  object_id   text NOT NULL,
  owner_id    text NOT NULL,
  source      text NOT NULL,
  imported    jsonb NOT NULL,
  imported_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (kind, object_id)
);
CREATE INDEX imported_objects_owner_idx ON {schema}.imported_objects (owner_id, kind);

-- Records that were gone before they were applied, and who gave them up: the position went from from_offset to
-- to_offset while the topic held low_offset to high_offset. epoch is that of the claim in which it moved.
CREATE TABLE {schema}.accepted_losses (
  topic       text NOT NULL,
  topic_id    text NOT NULL,
  partition   integer NOT NULL,
  epoch       bigint NOT NULL,
  from_offset bigint NOT NULL,
  to_offset   bigint NOT NULL,
  low_offset  bigint NOT NULL,
  high_offset bigint NOT NULL,
  accepted_at timestamptz NOT NULL DEFAULT now(),
  actor       text NOT NULL,
  reason      text NOT NULL,
  PRIMARY KEY (topic, partition, epoch),
  CONSTRAINT accepted_losses_range_ck CHECK (to_offset BETWEEN low_offset AND high_offset)
);
