"""The relay as a process of its own, against real Kafka and PostgreSQL."""
