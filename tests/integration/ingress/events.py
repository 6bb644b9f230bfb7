"""Events of the gateway as bytes."""

import json
from typing import Any

from confluent_kafka import Message


def event(
    event_id: str = "evt_1",
    object_id: str = "dep_1",
    *,
    kind: str = "deposit_order",
    version: object = 1,
    status: object = "open",
    entity: dict[str, Any] | None = None,
    **members: object,
) -> bytes:
    """One sound event of merchant mer_1; members replace those of the envelope."""
    whole: dict[str, Any] = {
        "id": event_id,
        "object": "event",
        "type": "deposit.updated",
        "api_version": "2026-01-01",
        "livemode": True,
        "created_at": "2026-01-02T03:04:05Z",
        "sequence": 7,
        "account": {"merchant_id": "mer_1"},
        "data": {"object": {"id": object_id, "object": kind, "version": version, "status": status} | (entity or {})},
    }
    return json.dumps(whole | members).encode()


def header_pairs(message: Message) -> list[tuple[str, str | bytes | None]]:
    """A record's headers as they stand; confluent-kafka's types allow a dict that consumers never give."""
    headers = message.headers() or []
    assert isinstance(headers, list)
    return headers


def headers_of(message: Message) -> dict[str, str]:
    """A record's headers as text; a repeated one would be lost, so it fails."""
    found: dict[str, str] = {}
    for name, value in header_pairs(message):
        assert name not in found, f"header {name} is repeated"
        found[name] = value.decode() if isinstance(value, bytes) else str(value)
    return found
