"""The relay: publishes each outbox row exactly once to the topic of its effect."""
