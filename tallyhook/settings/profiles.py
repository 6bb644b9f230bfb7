"""The two profiles: low latency, or few and large requests."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """The knobs that only make sense together (fewer, larger requests cost less and wait longer)."""

    linger_ms: int
    fetch_min_bytes: int
    batch_rows: int
    stream_batch_events: int
    relay_gather_seconds: float


PROFILES: Mapping[str, Profile] = {
    "latency": Profile(
        linger_ms=5, fetch_min_bytes=1, batch_rows=1000, stream_batch_events=5000, relay_gather_seconds=0.0
    ),
    "throughput": Profile(
        linger_ms=25,
        fetch_min_bytes=65_536,
        batch_rows=2000,
        stream_batch_events=5000,
        relay_gather_seconds=0.5,
    ),
}
