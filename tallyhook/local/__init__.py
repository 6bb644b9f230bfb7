"""Kafka and PostgreSQL for one machine: given by settings, in containers, or started from downloaded parts."""
