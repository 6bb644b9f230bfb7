"""Input that nobody honest sends, at every place that reads it."""
