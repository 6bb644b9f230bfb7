"""The story that `tallyhook demo` plays: three deposits, and by hand what must come of them.

A: an expiry lands after the settlement it precedes. B: a settlement lands after its reversal. C: a customer pays too
much, the flag comes in a late event, and the order is known only after the first webhook.
Source: the gateway's guide on event order, cases A and B, and its rules for overpayments.
"""

import json
from dataclasses import dataclass
from typing import Any

MERCHANT_ID = "mer_demo"


@dataclass(frozen=True, slots=True)
class StoryEvent:
    """One event of the gateway and the bytes it is sent as."""

    case: str
    id: str
    version: int
    status: str
    body: bytes


@dataclass(frozen=True, slots=True)
class StoryDelivery:
    """One POST, in the order of arrival, with what must be answered and decided.

    Args:
        event: key of `EVENTS`.
        note: what happens here, for the reader.
        forged: one byte of the body is changed after signing.
        status: the HTTP answer.
        verdict: the sink's verdict on this delivery; None when nothing may come of it.
        reason: its reason code, if one is expected.
        correlate_after: the merchant's service stores the deposit's order after this delivery was parked.
    """

    event: str
    note: str
    verdict: str | None
    reason: str | None = None
    status: int = 200
    forged: bool = False
    correlate_after: bool = False


@dataclass(frozen=True, slots=True)
class StoryEffect:
    """An effect that must be read from its topic, once."""

    effect: str
    subject: str
    dedupe_key: str
    payload: dict[str, Any]


def _event(
    case: str, name: str, kind: str, deposit: str, version: int, status: str, at: str, sequence: int, **fields: Any
) -> StoryEvent:
    body = {
        "id": name,
        "object": "event",
        "type": f"deposit.{kind}",
        "api_version": "2026-01-01",
        "livemode": True,
        "created_at": at,
        "sequence": sequence,
        "account": {"merchant_id": MERCHANT_ID, "white_label_id": None},
        "data": {"object": {"id": deposit, "object": "deposit_order", "version": version, "status": status, **fields}},
    }
    return StoryEvent(case, name, version, status, json.dumps(body, ensure_ascii=False).encode())


def _money(ordered: int, transferred: int, received: int, fee: int) -> dict[str, int]:
    return {
        "ordered_amount_minor": ordered,
        "transferred_amount_minor": transferred,
        "amount_received_minor": received,
        "fee_total_minor": fee,
        "credited_amount_minor": received - fee,
    }


_CLAIM = {
    "claim_id": "clm_c",
    "cause": "same_transfer_excess",
    "amount_minor": 20_000,
    "slip_received_at": "2026-03-02T11:04:30Z",
    "status": "open",
    "action_required": "contact_support",
}

EVENTS: dict[str, StoryEvent] = {
    event.id: event
    for event in (
        _event("A", "evt_a6", "expired", "dep_a", 6, "expired", "2026-03-02T10:04:41Z", 101,
               is_terminal=False, late_slip_accepted_until="2026-03-03T10:04:41Z", ordered_amount_minor=500_000),
        _event("A", "evt_a7", "slip_received", "dep_a", 7, "slip_received", "2026-03-02T10:31:02Z", 104,
               is_terminal=False, ordered_amount_minor=500_000),
        _event("A", "evt_a9", "settled", "dep_a", 9, "settled", "2026-03-02T10:33:15Z", 106,
               is_terminal=True, partial=False, **_money(500_000, 500_000, 500_000, 7_500)),
        _event("B", "evt_b9", "settled", "dep_b", 9, "settled", "2026-03-02T09:38:02Z", 90,
               is_terminal=True, partial=False, **_money(250_000, 250_000, 250_000, 3_750)),
        _event("B", "evt_b12", "reversed", "dep_b", 12, "reversed", "2026-03-02T09:41:20Z", 95,
               is_terminal=True, **_money(250_000, 250_000, 250_000, 3_750)),
        _event("C", "evt_c4", "slip_received", "dep_c", 4, "slip_received", "2026-03-02T11:04:31Z", 110,
               is_terminal=False, ordered_amount_minor=100_000, overpayment=_CLAIM),
        _event("C", "evt_c5", "settled", "dep_c", 5, "settled", "2026-03-02T11:05:00Z", 112,
               is_terminal=True, partial=False, **_money(100_000, 120_000, 100_000, 1_500)),
    )
}  # fmt: skip

CORRELATIONS: dict[str, tuple[str, str, str]] = {
    "dep_a": ("ref_a", "ord_a", "user_a"),
    "dep_b": ("ref_b", "ord_b", "user_b"),
    "dep_c": ("ref_c", "ord_c", "user_c"),
}
"""Deposit -> merchant_reference, our_order_id, our_user_id."""

UNKNOWN_AT_FIRST = "dep_c"

DELIVERIES: tuple[StoryDelivery, ...] = (
    StoryDelivery("evt_a7", "first attempt", "advanced"),
    StoryDelivery("evt_a9", "somebody changed a digit on the way", None, status=401, forged=True),
    StoryDelivery("evt_a9", "first attempt: credited, goods released", "advanced"),
    StoryDelivery("evt_a6", "fourth attempt, after the settlement", "late", "older_version"),
    StoryDelivery("evt_a9", "sent again, its answer was lost", "redelivered", "seen_before"),
    StoryDelivery("evt_a7", "sent again", "redelivered", "seen_before"),
    StoryDelivery("evt_a6", "sent again", "redelivered", "seen_before"),
    StoryDelivery("evt_b12", "first attempt, before its settlement", "advanced", "never_credited"),
    StoryDelivery("evt_b9", "third attempt, after the reversal", "late", "older_version"),
    StoryDelivery("evt_b12", "sent again", "redelivered", "seen_before"),
    StoryDelivery("evt_b9", "sent again by hand", "redelivered", "seen_before"),
    StoryDelivery("evt_c5", "before the order is known: parked, then applied", "advanced", correlate_after=True),
    StoryDelivery("evt_c4", "late, and it carries the overpayment flag", "late", "older_version"),
    StoryDelivery("evt_c5", "sent again", "redelivered", "seen_before"),
    StoryDelivery("evt_c4", "sent again", "redelivered", "seen_before"),
)

BALANCES: dict[str, int] = {"user_a": 500_000, "user_c": 100_000}
"""Satang by user; nobody else has a balance."""

FLAGS: dict[str, tuple[str, int, int]] = {"clm_c": ("dep_c", 4, 20_000)}
"""Claim -> deposit, version it was first seen at, amount in satang."""

EFFECTS: tuple[StoryEffect, ...] = (
    StoryEffect("update_order_status", "dep_a", "evt_a7:update_order_status",
                {"order_id": "ord_a", "status": "slip_received"}),
    StoryEffect("release_goods", "dep_a", "deposit:dep_a:release_goods",
                {"order_id": "ord_a", "partial": False, "received": 500_000, "ordered": 500_000}),
    StoryEffect("release_goods", "dep_c", "deposit:dep_c:release_goods",
                {"order_id": "ord_c", "partial": False, "received": 100_000, "ordered": 100_000}),
    StoryEffect("balance_entry", "dep_a", "deposit:dep_a:credit",
                {"entry_key": "deposit:dep_a:credit", "user_id": "user_a", "amount_minor": 500_000,
                 "balance_after_minor": 500_000, "pg_deposit_id": "dep_a", "our_order_id": "ord_a"}),
    StoryEffect("balance_entry", "dep_c", "deposit:dep_c:credit",
                {"entry_key": "deposit:dep_c:credit", "user_id": "user_c", "amount_minor": 100_000,
                 "balance_after_minor": 100_000, "pg_deposit_id": "dep_c", "our_order_id": "ord_c"}),
)  # fmt: skip
