"""The wire formats that the stages share: topics, headers, envelopes, effects, verdicts and reasons."""
