"""How a withdrawal order is shown: whole or sparse, and what has changed since the event before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tallyhook.gateway.world.ending import ExpectedFill
from tallyhook.gateway.world.story import Json, iso
from tallyhook.gateway.world.wallet import WITHDRAWAL_KIND


@dataclass(frozen=True, slots=True)
class Terms:
    """What is asked for, in satang.

    Args:
        reference: where the merchant's reference stands: merchant_reference, ticket, payout_id, or none.
    """

    amount_minor: int
    fee_minor: int
    max_splits: int = 4
    reference: str = "merchant_reference"


@dataclass(frozen=True, slots=True)
class Parties:
    """Who and when; fixed in a withdrawal's life.

    Args:
        replaces: the withdrawal that it was opened for, after a recall.
    """

    id: str
    user: str
    beneficiary: str
    reference: str
    created_at: datetime
    expires_at: datetime
    replaces: str | None


@dataclass(frozen=True, slots=True)
class Totals:
    """The members of an order that move; amounts are satang."""

    status: str
    filled: int
    remaining: int
    reserved: int = 0
    fee_recognized: int = 0
    splits: int = 0
    matched_legs: int = 0
    refunded: int | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk that was paid out, as the order's events tell it."""

    fact: ExpectedFill
    event_members: Json


def sparse_snapshot(parties: Parties, version: int, now: Totals) -> Json:
    """What a `withdrawal.matched` event carries, and no more."""
    return _core(parties, version, now) | _reservation(now)


def whole_snapshot(parties: Parties, terms: Terms, version: int, now: Totals) -> Json:
    """The order as the API shows it; refunded_minor only once it has ended."""
    snapshot = _core(parties, version, now)
    if terms.reference == "merchant_reference":
        snapshot["merchant_reference"] = parties.reference
    snapshot |= {
        "end_user_ref": parties.user,
        "beneficiary_id": parties.beneficiary,
        "currency": "THB",
        "amount_total_minor": terms.amount_minor,
        "fee_total_minor": terms.fee_minor,
        "total_locked_minor": terms.amount_minor + terms.fee_minor,
        "fee_recognized_minor": now.fee_recognized,
        "settled_splits": now.splits,
        "max_splits": terms.max_splits,
        "created_at": iso(parties.created_at),
        "expires_at": iso(parties.expires_at),
        "metadata": _metadata(parties, terms),
    }
    if now.reserved:
        snapshot |= _reservation(now)
    if now.refunded is not None:
        snapshot["refunded_minor"] = now.refunded
    return snapshot


def previous_attributes(version: int, then: Totals, now: Totals) -> Json:
    """What has changed since the event before, with the values of then; it decides nothing.

    Args:
        version: that of the event before; 0 where there was none.
    """
    members = {
        "status": (then.status or None, now.status),
        "filled_minor": (then.filled, now.filled),
        "remaining_minor": (then.remaining, now.remaining),
        "reserved_minor": (then.reserved, now.reserved),
        "fee_recognized_minor": (then.fee_recognized, now.fee_recognized),
        "settled_splits": (then.splits, now.splits),
        "refunded_minor": (then.refunded, now.refunded),
    }
    changed: Json = {name: before for name, (before, after) in members.items() if before != after}
    return {"version": version} | changed


def receipts(chunks: Sequence[Chunk]) -> list[Json]:
    """`fills` of a settled order: the payee has confirmed the first chunk and is asked for the others."""
    names = ("leg_ref", "amount_minor", "fee_recognized_minor", "settled_at")
    return [
        {name: chunk.event_members[name] for name in names}
        | {"receipt_state": "confirmed" if place == 0 else "awaiting_confirm"}
        for place, chunk in enumerate(chunks)
    ]


def _core(parties: Parties, version: int, now: Totals) -> Json:
    return {
        "id": parties.id,
        "object": WITHDRAWAL_KIND,
        "version": version,
        "status": now.status,
        "filled_minor": now.filled,
        "remaining_minor": now.remaining,
    }


def _reservation(now: Totals) -> Json:
    return {"reserved_minor": now.reserved, "matched_legs": now.matched_legs}


def _metadata(parties: Parties, terms: Terms) -> Json:
    metadata: Json = {"user_id": parties.user}
    if terms.reference in ("merchant_reference", "ticket"):
        metadata["ticket"] = parties.reference
    elif terms.reference == "payout_id":
        metadata["payout_id"] = parties.reference
    if parties.replaces is not None:
        metadata["replaces"] = parties.replaces
    return metadata
