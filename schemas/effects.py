"""Effects: one message type each; a downstream service consumes one topic per effect.

Every named member is present, null when unknown. The effect's dedupe key travels as `ce_id`.
"""

from typing import Literal, get_args

import msgspec

EffectName = Literal[
    "release_goods",
    "hold_goods",
    "show_late_slip",
    "fail_order",
    "show_pending_review",
    "update_order_status",
]
EFFECTS: tuple[EffectName, ...] = get_args(EffectName)


class ReleaseGoods(msgspec.Struct, frozen=True, gc=False):
    """A deposit settled: hand over the goods, once. Amounts are satang (`received` is what the user was credited)."""

    order_id: str
    partial: bool
    received: int
    ordered: int


class HoldGoods(msgspec.Struct, frozen=True, gc=False):
    """A credited deposit was reversed: keep the goods back, once."""

    order_id: str


class ShowLateSlip(msgspec.Struct, frozen=True, gc=False):
    """The deposit ended, but a slip is still accepted until `until` (text as the gateway sent it)."""

    order_id: str
    until: str


class FailOrder(msgspec.Struct, frozen=True, gc=False):
    """The deposit is over: expired, canceled or rejected. `reason` is a code, or the gateway's Thai text, or null."""

    order_id: str
    reason: str | None


class ShowPendingReview(msgspec.Struct, frozen=True, gc=False):
    """The gateway reviews the deposit. `message` is its Thai text for the end user, or null."""

    order_id: str
    message: str | None


class UpdateOrderStatus(msgspec.Struct, frozen=True, gc=False):
    """Any other status, known or not."""

    order_id: str
    status: str


Effect = ReleaseGoods | HoldGoods | ShowLateSlip | FailOrder | ShowPendingReview | UpdateOrderStatus

EFFECT_TYPES: dict[EffectName, type[Effect]] = {
    "release_goods": ReleaseGoods,
    "hold_goods": HoldGoods,
    "show_late_slip": ShowLateSlip,
    "fail_order": FailOrder,
    "show_pending_review": ShowPendingReview,
    "update_order_status": UpdateOrderStatus,
}


class BalanceEntry(msgspec.Struct, frozen=True, gc=False):
    """One credit (above zero) or debit (below zero) of a user, in satang, with the balance after it."""

    entry_key: str
    user_id: str
    amount_minor: int
    balance_after_minor: int
    pg_deposit_id: str
    our_order_id: str


BALANCE_ENTRY = "balance_entry"
"""The outbox type of a balance entry: it goes to `balance-entries`, not to an effect topic."""
