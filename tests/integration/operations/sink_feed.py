"""The sink's own work on an operated installation, event by event, without its process."""

import json
from dataclasses import dataclass
from typing import Any

from schemas.headers import verdict_headers
from sinks.batch import Applier
from sinks.records import SinkRecord
from tallyhook.clock import Clock
from tallyhook.postgres import Connection, connect
from tests.integration.operations.operated import MERCHANT, Operated, deposit_body, named_headers

MONEY = {
    "ordered_amount_minor": 10_000,
    "transferred_amount_minor": 10_000,
    "amount_received_minor": 10_000,
    "fee_total_minor": 150,
    "credited_amount_minor": 9_850,
}


@dataclass
class SinkFeed:
    """One partition's owner; `claim` makes it so again after `release`."""

    place: Operated
    connection: Connection | None = None
    applier: Applier | None = None
    next_offset: int = 0

    def claim(self, clock: Clock | None = None) -> None:
        """Owns the partition as a running sink does."""
        self.release()
        self.connection = connect(self.place.settings.database, "sink")
        self.applier = Applier(self.connection, self.place.settings.installation, self.place.settings.sink, clock=clock)
        self.applier.claim((0,))

    def release(self) -> None:
        """No sink runs any more."""
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def apply(self, *bodies: bytes) -> None:
        """One batch."""
        assert self.applier is not None
        records = [self._record(self.applier, body) for body in bodies]
        assert self.applier.apply(records).taken == len(records)

    def deposit(self, deposit: str, version: int, status: str) -> None:
        """One event of a deposit, a batch of its own."""
        members = MONEY if status == "reversed" else {}
        self.apply(deposit_body(f"evt_{deposit}_{version}_{self.next_offset}", deposit, version, status, **members))

    def look(self) -> None:
        """Applies what waited and can go on."""
        assert self.applier is not None
        self.applier.apply_ready()

    def _record(self, applier: Applier, body: bytes) -> SinkRecord:
        offset, self.next_offset = self.next_offset, self.next_offset + 1
        added = verdict_headers("advanced", None, None, 0, offset)
        return SinkRecord(0, offset, applier.epoch(0), body, [*named_headers(json.loads(body)), *added])


def withdrawal_body(
    withdrawal: str,
    version: int,
    status: str,
    *,
    filled: int | None = None,
    remaining: int = 0,
    sparse: bool = False,
    fill: tuple[str, int, str] | None = None,
    reversal: tuple[str, int, str, str] | None = None,
    merchant: str = MERCHANT,
) -> bytes:
    """A withdrawal's event of 1,000 satang.

    Args:
        sparse: without what a row needs.
        fill: leg_ref, amount and balance transaction of a chunk.
        reversal: leg_ref, amount, the reversed and the reversing balance transaction.
    """
    entity: dict[str, Any] = {"id": withdrawal, "object": "withdrawal_order", "version": version, "status": status}
    if not sparse:
        entity |= {"amount_total_minor": 1000, "remaining_minor": remaining, "fee_total_minor": 27}
    if filled is not None:
        entity["filled_minor"] = filled
    data: dict[str, Any] = {"object": entity}
    event_type = f"withdrawal.{status}"
    if fill is not None:
        event_type = "withdrawal.filled"
        data["fill"] = {
            "leg_ref": fill[0],
            "sequence": 1,
            "amount_minor": fill[1],
            "fee_recognized_minor": 8,
            "settled_at": "2026-03-01T10:00:00Z",
            "balance_transaction_id": fill[2],
        }
    if reversal is not None:
        event_type = "withdrawal.fill_reversed"
        data["fill"] = {"leg_ref": reversal[0], "amount_minor": reversal[1], "balance_transaction_id": reversal[2]}
        data["reversal"] = {
            "reason_code": "BANK_RECALL",
            "reverses_balance_transaction_id": reversal[2],
            "balance_transaction_id": reversal[3],
        }
    event = {
        "id": f"evt_{withdrawal}_{version}_{event_type}",
        "object": "event",
        "type": event_type,
        "livemode": True,
        "created_at": "2026-03-01T11:00:00Z",
        "sequence": version,
        "account": {"merchant_id": merchant},
        "data": data,
    }
    return json.dumps(event).encode()
