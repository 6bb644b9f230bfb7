"""Reading a withdrawal's event: what its snapshot, its chunk and its reversal must be to have been applied."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tallyhook.operations.audit.stored_event import InboxEvent, Json, Unreadable, moment, read

BIGINTS = (
    "amount_total_minor",
    "fee_total_minor",
    "total_locked_minor",
    "filled_minor",
    "remaining_minor",
    "refunded_minor",
    "fee_recognized_minor",
)
SMALLINTS = ("settled_splits", "max_splits")
REASON_CODES = ("BANK_RECALL", "ACCOUNT_FROZEN", "SLIP_INVALIDATED_AFTER_SETTLEMENT")
KEY_BYTES_MAX = 512
"""A key must fit into its index."""


@dataclass(frozen=True, slots=True)
class Fill:
    """A chunk that was paid out, as pg_withdrawal_fills keeps it (satang)."""

    leg_ref: str
    sequence: int | None
    amount_minor: int
    fee_recognized_minor: int | None
    settled_at: datetime | None
    auto_confirm_at: datetime | None
    balance_transaction_id: str | None
    reversed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A chunk that was taken back, as pg_withdrawal_fill_reversals keeps it (satang).

    Args:
        status_snapshot: of the order, in the event that brought it.
        compensated: its effect was put into the outbox.
    """

    leg_ref: str
    reason_code: str
    reverses_balance_transaction_id: str
    reversal_balance_transaction_id: str
    reversed_at: datetime
    replacement_withdrawal_id: str | None
    amount_minor: int
    status_snapshot: str
    compensated: bool = True


@dataclass(frozen=True, slots=True)
class Reading:
    """One event.

    Args:
        o: data.object.
        our_ref: the merchant's own reference, None where this event does not tell it.
        fill, tombstone: what a `withdrawal.filled` or a `withdrawal.fill_reversed` brings.
    """

    event: InboxEvent
    o: Json
    version: int
    our_ref: str | None
    fill: Fill | None = None
    tombstone: Tombstone | None = None

    @property
    def can_build(self) -> bool:
        """Whether it has what a row cannot be without."""
        return self.o.get("amount_total_minor") is not None and self.o.get("remaining_minor") is not None


def read_withdrawal(event: InboxEvent, object_id: str) -> Reading:
    """Raises Unreadable for an event that had to be quarantined, whatever is stored."""
    body = read(event, object_id)
    o = body["data"]["object"]
    version = integer(o, "version", bits=64)
    if version is None or version < 0:
        raise Unreadable("data.object.version is missing or below 0")
    if version != event.version:
        raise Unreadable(f"its row says version {event.version}, its bytes {version}")
    if not isinstance(o.get("status"), str):
        raise Unreadable("data.object.status is no text")
    for name in BIGINTS:
        integer(o, name, bits=64)
    for name in SMALLINTS:
        integer(o, name, bits=16)
    our_ref = text(o, "merchant_reference") or _reference_in(o.get("metadata"))
    match body.get("type"):
        case "withdrawal.filled":
            return Reading(event, o, version, our_ref, fill=_fill(body["data"].get("fill")))
        case "withdrawal.fill_reversed":
            return Reading(event, o, version, our_ref, tombstone=_tombstone(body, o["status"]))
        case _:
            return Reading(event, o, version, our_ref)


def _reference_in(metadata: object) -> str | None:
    if isinstance(metadata, dict):
        for name in ("ticket", "payout_id"):
            value = metadata.get(name)
            if isinstance(value, str) and value:
                return value
    return None


def _fill(f: object) -> Fill:
    if not isinstance(f, dict):
        raise Unreadable("data.fill is no object")
    return Fill(
        leg_ref=_key(f, "leg_ref"),
        sequence=integer(f, "sequence", bits=16),
        amount_minor=_needed(f, "amount_minor"),
        fee_recognized_minor=integer(f, "fee_recognized_minor", bits=64),
        settled_at=instant(f, "settled_at"),
        auto_confirm_at=instant(f, "auto_confirm_at"),
        balance_transaction_id=text(f, "balance_transaction_id"),
    )


def _tombstone(body: Json, status: str) -> Tombstone:
    f, r = body["data"].get("fill"), body["data"].get("reversal")
    if not isinstance(f, dict) or not isinstance(r, dict):
        raise Unreadable("it lacks data.fill or data.reversal")
    if r.get("reason_code") not in REASON_CODES:
        raise Unreadable("data.reversal.reason_code is none of the three")
    taken_back, taking_back = _key(r, "reverses_balance_transaction_id"), _key(r, "balance_transaction_id")
    if text(f, "balance_transaction_id") != taken_back:
        raise Unreadable("data.reversal takes back another transaction than data.fill names")
    if taking_back == taken_back:
        raise Unreadable("data.reversal names one transaction that takes back itself")
    at = instant(body, "created_at")
    if at is None:
        raise Unreadable("created_at is missing")
    return Tombstone(
        leg_ref=_key(f, "leg_ref"),
        reason_code=r["reason_code"],
        reverses_balance_transaction_id=taken_back,
        reversal_balance_transaction_id=taking_back,
        reversed_at=at,
        replacement_withdrawal_id=text(body["data"], "replacement_withdrawal_id"),
        amount_minor=_needed(f, "amount_minor"),
        status_snapshot=status,
    )


def integer(o: dict[str, Any], name: str, *, bits: int) -> int | None:
    """A member that is a whole number of so many bits; None where it is absent or null. Raises Unreadable."""
    value = o.get(name)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and -(1 << bits - 1) <= value < 1 << bits - 1:
        return value
    raise Unreadable(f"{name} is no whole number of {bits} bits")


def text(o: dict[str, Any], name: str) -> str | None:
    """A member that is text; None where it is absent or null. Raises Unreadable."""
    value = o.get(name)
    if value is None or isinstance(value, str):
        return value
    raise Unreadable(f"{name} is no text")


def instant(o: dict[str, Any], name: str) -> datetime | None:
    """A member that is a date-time with a zone; None where it is absent or null. Raises Unreadable."""
    value = o.get(name)
    found = moment(value)
    if found is None and value is not None:
        raise Unreadable(f"{name} is no date-time with a zone")
    return found


def _needed(o: dict[str, Any], name: str) -> int:
    value = integer(o, name, bits=64)
    if value is None:
        raise Unreadable(f"{name} is missing")
    return value


def _key(o: dict[str, Any], name: str) -> str:
    value = text(o, name)
    if not value or len(value.encode()) > KEY_BYTES_MAX:
        raise Unreadable(f"{name} is missing, empty or longer than {KEY_BYTES_MAX} bytes")
    return value
