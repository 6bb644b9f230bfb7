"""Dangers of an installation: each with what it endangers and the command that repairs it."""
