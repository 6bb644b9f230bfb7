"""What operators do: topics, explaining, and running the whole pipeline on one machine."""
