"""Tallyhook: exactly-once business effects from at-least-once, out-of-order payment webhooks."""

__version__ = "0.1.0"
