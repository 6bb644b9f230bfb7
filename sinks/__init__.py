"""The sink: decides state changes and commits rows, effects and the consumer's offset in one transaction."""
