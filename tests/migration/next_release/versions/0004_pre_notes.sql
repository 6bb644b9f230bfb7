-- What the next release adds, while the programs of this one work.
ALTER TABLE {schema}.pg_deposits ADD COLUMN note text;
CREATE TABLE {schema}.notes (
  note_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  note     text NOT NULL
);
CREATE INDEX IF NOT EXISTS pg_deposits_note_idx ON {schema}.pg_deposits (note);
INSERT INTO {schema}.schema_revisions (revision, phase, compatible_from) VALUES ('0004', 'pre', '0003');
