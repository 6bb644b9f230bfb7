"""Kills real processes under load and asks what came of it."""
