"""Signed requests as the door sees them."""

from datetime import UTC, datetime

from ingress.messages import Head, Request
from tallyhook.gateway.signing import SigningKey

NOW = 1_700_000_000


def at(seconds: float) -> datetime:
    """A moment, given in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC)


def signed(key: SigningKey, body: bytes, *, message_id: str = "evt_1", timestamp: int = NOW) -> Request:
    """A request with the three headers."""
    return request(key.sign(message_id, timestamp, body), body)


def request(headers: dict[str, str], body: bytes) -> Request:
    """A request with these headers."""
    pairs = tuple((name.encode(), value.encode("latin-1")) for name, value in headers.items())
    return Request(Head("POST", "/webhooks", pairs), body)


def with_header(original: Request, name: bytes, value: bytes) -> Request:
    """The same with one header's value replaced."""
    pairs = tuple((known, value if known == name else old) for known, old in original.head.headers)
    return Request(Head("POST", "/webhooks", pairs), original.body)
