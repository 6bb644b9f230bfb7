"""The pure rules of the sink, without Kafka and without PostgreSQL."""
