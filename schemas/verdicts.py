"""Verdicts: what was decided about a delivery."""

from typing import Literal

StreamVerdict = Literal["advanced", "late", "redelivered", "immutable"]
"""By version alone: newer than the current; first delivery but older; seen before; an object without versions."""

SinkVerdict = Literal["advanced", "late", "redelivered", "immutable", "parked", "quarantined"]
"""The same, judged by the sink's own rows, and what waits or was set aside. This is what `explain` shows."""

ParkedReason = Literal["correlation", "snapshot"]
"""What a parked event waits for: its deposit's correlation, or a snapshot that can build its row."""
