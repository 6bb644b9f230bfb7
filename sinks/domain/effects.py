"""Effects of deposits: their payloads and the keys that make each of them happen once.

One-shot business effects are keyed by the deposit, so that no later event repeats them; effects that only show a status
are keyed by the event.
"""

from decimal import Decimal
from typing import Literal

import msgspec

from schemas.effects import (
    EffectName,
    FailOrder,
    HoldGoods,
    ReleaseGoods,
    ShowLateSlip,
    ShowPendingReview,
    UpdateOrderStatus,
)
from schemas.events import DepositEvent, DepositObject
from sinks.domain.decision import EffectDraft
from sinks.domain.money import Money

DEFAULT_FAIL_REASON = "expired"

# Only texts are looked at, and a number that is too great for a double, which jsonb takes, must stop nothing.
_decode = msgspec.json.Decoder(float_hook=Decimal).decode


def entry_key(pg_deposit_id: str, side: Literal["credit", "debit"]) -> str:
    """The key of a balance entry: a deposit has at most one of each side."""
    return f"deposit:{pg_deposit_id}:{side}"


def release_goods(deposit: DepositObject, order_id: str, money: Money) -> EffectDraft:
    """The deposit settled. `partial` counts only where the gateway sent a literal true."""
    payload = ReleaseGoods(order_id, bytes(deposit.partial) == b"true", money.received, money.ordered)
    return EffectDraft("release_goods", _once(deposit, "release_goods"), payload, deposit.version)


def hold_goods(deposit: DepositObject, order_id: str) -> EffectDraft:
    """A credited deposit was reversed."""
    return EffectDraft("hold_goods", _once(deposit, "hold_goods"), HoldGoods(order_id), deposit.version)


def status_effect(event: DepositEvent, order_id: str) -> EffectDraft:
    """What the other statuses show; an unknown status is passed on as it is."""
    deposit = event.data.object
    payload: ShowLateSlip | FailOrder | ShowPendingReview | UpdateOrderStatus
    name: EffectName
    match deposit.status:
        case "expired" | "canceled" if deposit.is_terminal is False and deposit.late_slip_accepted_until:
            name, payload = "show_late_slip", ShowLateSlip(order_id, deposit.late_slip_accepted_until)
        case "expired" | "canceled":
            reason = deposit.cancel_reason_code
            name, payload = "fail_order", FailOrder(order_id, DEFAULT_FAIL_REASON if reason is None else reason)
        case "under_review":
            name, payload = "show_pending_review", ShowPendingReview(order_id, review_message(deposit.review))
        case "rejected":
            name, payload = "fail_order", FailOrder(order_id, display_th(_load(deposit.rejection)))
        case status:
            name, payload = "update_order_status", UpdateOrderStatus(order_id, status)
    return EffectDraft(name, f"{event.id}:{name}", payload, deposit.version)


def review_message(review: msgspec.Raw) -> str | None:
    """The Thai text of the first review reason; None when there is none, whatever shape was sent instead."""
    value = _load(review)
    reasons = value.get("reasons") if isinstance(value, dict) else None
    return display_th(reasons[0]) if isinstance(reasons, list) and reasons else None


def display_th(value: object) -> str | None:
    """The gateway's Thai text for end users; None when there is none."""
    text = value.get("display_th") if isinstance(value, dict) else None
    return text if isinstance(text, str) else None


def _once(deposit: DepositObject, name: EffectName) -> str:
    return f"deposit:{deposit.id}:{name}"


def _load(raw: msgspec.Raw) -> object:
    value: object = _decode(raw)
    return value
