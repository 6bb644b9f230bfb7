"""Kafka with TLS, SASL and ACLs, PostgreSQL with TLS and roles, and pgbouncer before it."""
