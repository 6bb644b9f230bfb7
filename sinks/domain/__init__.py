"""What an event means for the state of its object: pure functions that know neither Kafka nor SQL."""
