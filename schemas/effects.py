"""Effects: one message type each; a downstream service consumes one topic per effect.

Every named member is present, null when unknown. The effect's dedupe key travels as `ce_id`.
"""

from typing import Annotated, Literal, get_args

import msgspec

Satang = Annotated[int, msgspec.Meta(description="satang: hundredths of a baht")]

EffectName = Literal[
    "release_goods",
    "hold_goods",
    "show_late_slip",
    "fail_order",
    "show_pending_review",
    "update_order_status",
    "show_progress",
    "close_withdrawal",
    "refund_unfilled",
    "release_user_lock",
    "update_local_status",
    "compensate_reversed_fill",
]
EFFECTS: tuple[EffectName, ...] = get_args(EffectName)


class ReleaseGoods(msgspec.Struct, frozen=True, gc=False):
    """A deposit settled: hand over the goods, once. Amounts are satang (`received` is what the user was credited)."""

    order_id: str
    partial: bool
    received: Satang
    ordered: Satang


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


class ShowProgress(msgspec.Struct, frozen=True, gc=False):
    """A withdrawal is paid out in part (satang). `ticket` is the merchant's own reference, null until it is known."""

    ticket: str | None
    filled_minor: Satang
    amount_total_minor: Satang


class CloseWithdrawal(msgspec.Struct, frozen=True, gc=False):
    """A withdrawal was paid out in full: close it, once."""

    withdrawal_id: str
    ticket: str | None


class RefundUnfilled(msgspec.Struct, frozen=True, gc=False):
    """A withdrawal ended before all was paid out: give the rest back, once. Amounts are satang.

    `release_minor` goes back to the user: the principal that nobody filled and the fee that was not used.
    `debited_minor` stays with him as paid: what he received and the fee that was used. What is not known is null.
    """

    withdrawal_id: str
    ticket: str | None
    refunded_minor: Satang | None
    fee_unused_minor: Satang | None
    release_minor: Satang | None
    debited_minor: Satang | None


class ReleaseUserLock(msgspec.Struct, frozen=True, gc=False):
    """A withdrawal was not approved: unlock what was held for it, once."""

    withdrawal_id: str
    ticket: str | None


class UpdateLocalStatus(msgspec.Struct, frozen=True, gc=False):
    """Any other status of a withdrawal, known or not."""

    ticket: str | None
    status: str


class CompensateReversedFill(msgspec.Struct, frozen=True, gc=False):
    """A chunk that had been paid out was taken back: compensate, once a chunk, also where its event came late."""

    withdrawal_id: str
    leg_ref: str
    amount_minor: Satang
    reason_code: str
    reverses_balance_transaction_id: str
    reversal_balance_transaction_id: str
    replacement_withdrawal_id: str | None


DepositEffect = ReleaseGoods | HoldGoods | ShowLateSlip | FailOrder | ShowPendingReview | UpdateOrderStatus
WithdrawalEffect = (
    ShowProgress | CloseWithdrawal | RefundUnfilled | ReleaseUserLock | UpdateLocalStatus | CompensateReversedFill
)
Effect = DepositEffect | WithdrawalEffect

EFFECT_TYPES: dict[EffectName, type[Effect]] = {
    "release_goods": ReleaseGoods,
    "hold_goods": HoldGoods,
    "show_late_slip": ShowLateSlip,
    "fail_order": FailOrder,
    "show_pending_review": ShowPendingReview,
    "update_order_status": UpdateOrderStatus,
    "show_progress": ShowProgress,
    "close_withdrawal": CloseWithdrawal,
    "refund_unfilled": RefundUnfilled,
    "release_user_lock": ReleaseUserLock,
    "update_local_status": UpdateLocalStatus,
    "compensate_reversed_fill": CompensateReversedFill,
}


class BalanceEntry(msgspec.Struct, frozen=True, gc=False):
    """One credit (above zero) or debit (below zero) of a user, in satang, with the balance after it."""

    entry_key: str
    user_id: str
    amount_minor: Satang
    balance_after_minor: Satang
    pg_deposit_id: str
    our_order_id: str


BALANCE_ENTRY = "balance_entry"
"""The outbox type of a balance entry: it goes to `balance-entries`, not to an effect topic."""
