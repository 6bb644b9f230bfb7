"""Deliveries for tests of the sink: bodies as the gateway sends them, headers as the stream passes them on."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from schemas.headers import EventHeaders, verdict_headers

RECEIVED_AT = "2026-05-01T10:00:00+00:00"
CREATED_AT = "2026-05-01T09:59:59.123Z"
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
    event_type: str = ""
    changed: dict[str, str | bytes | None] = field(default_factory=dict)

    def headers(self, source_partition: int, source_offset: int) -> list[tuple[str, str | bytes | None]]:
        """The record's headers; `changed` ones replaced, or left out where None."""
        written = EventHeaders(
            id=self.event_id,
            type=self.event_type or f"deposit.{self.status}",
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


def withdrawal(
    event_id: str,
    object_id: str,
    version: int,
    status: str,
    *,
    fill: dict[str, Any] | None = None,
    reversal: dict[str, Any] | None = None,
    sparse: bool = False,
    created_at: str = CREATED_AT,
    replacement: str | None = None,
    **members: Any,
) -> Delivery:
    """An event of a withdrawal of 1,000 THB; a sparse one has id, version and status only.

    With a fill it is a `withdrawal.filled`, with a reversal beside it a `withdrawal.fill_reversed`.
    """
    snapshot: dict[str, Any] = {"id": object_id, "object": "withdrawal_order", "version": version, "status": status}
    if not sparse:
        snapshot |= {
            "amount_total_minor": 100_000,
            "fee_total_minor": 2_675,
            "total_locked_minor": 102_675,
            "filled_minor": 0,
            "remaining_minor": 100_000,
            "max_splits": 4,
            "merchant_reference": f"ref-{object_id}",
        }
    snapshot |= members
    event_type = f"withdrawal.{status}"
    if fill is not None:
        event_type = "withdrawal.filled" if reversal is None else "withdrawal.fill_reversed"
    beside = {"fill": fill, "reversal": reversal, "replacement_withdrawal_id": replacement}
    signed = body(event_id, event_type, snapshot, created_at=created_at, **beside)
    return Delivery(event_id, object_id, version, status, signed, kind="withdrawal_order", event_type=event_type)


def chunk(leg_ref: str, amount_minor: int = 30_000, **members: Any) -> dict[str, Any]:
    """`data.fill`; its balance transaction is `btxn-<leg>`."""
    return {
        "leg_ref": leg_ref,
        "sequence": 1,
        "amount_minor": amount_minor,
        "fee_recognized_minor": 802,
        "settled_at": "2026-05-01T09:30:00.5Z",
        "auto_confirm_at": "2026-05-01T12:30:00Z",
        "balance_transaction_id": f"btxn-{leg_ref}",
    } | members


def taken_back(leg_ref: str, **members: Any) -> dict[str, Any]:
    """`data.reversal` of that chunk; its own balance transaction is `rtxn-<leg>`."""
    return {
        "reason_code": "BANK_RECALL",
        "reverses_balance_transaction_id": f"btxn-{leg_ref}",
        "balance_transaction_id": f"rtxn-{leg_ref}",
    } | members


def movement(event_id: str, btxn_id: str, **members: Any) -> Delivery:
    """A `balance.credited` event."""
    snapshot = {
        "id": btxn_id,
        "object": "balance_transaction",
        "type": "deposit",
        "direction": "credit",
        "amount_minor": 5_000,
        "bucket_from": None,
        "bucket_to": "pending",
        "source": {"id": "dep-1"},
        "created_at": "2026-05-01T09:30:00.123456Z",
        "balance_after": {"pending_minor": 5_000},
    } | members
    signed = body(event_id, "balance.credited", snapshot)
    kind = "balance_transaction"
    return Delivery(event_id, btxn_id, None, "", signed, kind=kind, event_type="balance.credited")


def body(
    event_id: str, event_type: str, snapshot: dict[str, Any], *, created_at: str = CREATED_AT, **beside: Any
) -> bytes:
    """The signed bytes of an event; what stands beside `data.object` is left out where None."""
    event = {
        "id": event_id,
        "object": "event",
        "type": event_type,
        "api_version": "2026-01-01",
        "livemode": True,
        "created_at": created_at,
        "sequence": 1,
        "account": {"merchant_id": "mer_1", "white_label_id": None},
        "data": {
            "object": snapshot,
            "previous_attributes": {},
            **{name: value for name, value in beside.items() if value is not None},
        },
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
