"""Deliveries for tests of the sink: bodies as the gateway sends them, headers as the stream passes them on."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from schemas.headers import EventHeaders, verdict_headers

RECEIVED_AT = "2026-05-01T10:00:00+00:00"
MONEY = ("settled", "reversed")


@dataclass(frozen=True)
class Delivery:
    """One delivery of an event: its bytes, and what the headers say."""

    event_id: str
    object_id: str
    version: int | None
    status: str
    body: bytes
    kind: str = "deposit_order"
    livemode: bool = True
    origin: str = "webhook"
    received_at: str = RECEIVED_AT
    changed: dict[str, str | bytes | None] = field(default_factory=dict)

    def headers(self, source_partition: int, source_offset: int) -> list[tuple[str, str | bytes | None]]:
        """The record's headers; `changed` ones replaced, or left out where None."""
        written = EventHeaders(
            id=self.event_id,
            type=f"deposit.{self.status}",
            source="/gateway",
            subject=self.object_id,
            time="2026-05-01T09:59:59.123Z",
            object_kind=self.kind,
            status=self.status,
            version=self.version,
            merchant="mer_1",
            sequence=1,
            livemode=self.livemode,
            received_at=self.received_at,
            origin=self.origin,
            key_id="k1",
        ).encode()
        everything: Sequence[tuple[str, str | bytes | None]] = [
            *written,
            *verdict_headers("advanced", None, None, source_partition, source_offset),
        ]
        return [
            (name, self.changed.get(name, value))
            for name, value in everything
            if self.changed.get(name, "") is not None
        ]


def deposit(
    event_id: str, object_id: str, version: int, status: str, *, amount_minor: int = 10_000, **members: Any
) -> Delivery:
    """An event of a deposit; settled and reversed ones get five amounts that agree, with a fee of a tenth."""
    snapshot: dict[str, Any] = {"id": object_id, "object": "deposit_order", "version": version, "status": status}
    if status in MONEY:
        fee_minor = amount_minor // 10
        snapshot |= {
            "ordered_amount_minor": amount_minor,
            "transferred_amount_minor": amount_minor,
            "amount_received_minor": amount_minor,
            "fee_total_minor": fee_minor,
            "credited_amount_minor": amount_minor - fee_minor,
        }
    snapshot |= members
    return Delivery(event_id, object_id, version, status, body(event_id, f"deposit.{status}", snapshot))


def body(event_id: str, event_type: str, snapshot: dict[str, Any]) -> bytes:
    """The signed bytes of an event."""
    event = {
        "id": event_id,
        "object": "event",
        "type": event_type,
        "api_version": "2026-01-01",
        "livemode": True,
        "created_at": "2026-05-01T09:59:59.123Z",
        "sequence": 1,
        "account": {"merchant_id": "mer_1", "white_label_id": None},
        "data": {"object": snapshot, "previous_attributes": {}},
    }
    return json.dumps(event, ensure_ascii=False).encode()


def overpayment(claim_id: str, amount_minor: int = 500, **members: Any) -> dict[str, Any]:
    """An overpayment flag that keeps the rules."""
    return {
        "claim_id": claim_id,
        "cause": "same_transfer_excess",
        "amount_minor": amount_minor,
        "slip_received_at": "2026-05-01T09:00:00Z",
        "status": "open",
        "action_required": "contact_support",
    } | members


def now_text() -> str:
    """The present moment as the door writes it."""
    return datetime.now(UTC).isoformat()
