"""A release after this one: the same programs, made for two revisions more; for tests of an upgrade."""
