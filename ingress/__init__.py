"""The door: verifies each webhook and answers 2xx only once its bytes are durable in Kafka."""
