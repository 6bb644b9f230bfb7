-- Which revisions were run, and from which program on each can be worked with.
-- {schema} is the installation's schema.

-- compatible_from is the oldest program that works with the schema as this revision leaves it, named by the revision
-- that it was made for. A program that does not know a newer revision asks here whether it may stay.
CREATE TABLE {schema}.schema_revisions (
  revision        text PRIMARY KEY,
  phase           text NOT NULL CHECK (phase IN ('pre', 'post')),
  compatible_from text NOT NULL,
  applied_at      timestamptz NOT NULL DEFAULT now()
);
INSERT INTO {schema}.schema_revisions (revision, phase, compatible_from) VALUES ('0003', 'pre', '0002');
