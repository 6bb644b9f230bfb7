"""Typed events: what the sink reads of a body. Unknown fields are skipped, unknown statuses and types pass."""

from typing import Annotated

import msgspec

Bigint = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""A whole number that PostgreSQL's bigint can keep."""

Version = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
"""`data.object.version`: rises in the order in which the object's state changed."""


class Overpayment(msgspec.Struct, frozen=True, gc=False):
    """`data.object.overpayment`: the customer paid more than was ordered. Amounts are satang."""

    claim_id: str
    cause: str
    amount_minor: Bigint
    slip_received_at: str
    status: str
    action_required: str
    expected_response_at: str | None = None


class DepositObject(msgspec.Struct, frozen=True, gc=False):
    """`data.object` of a deposit order. Amounts are satang; dates are text until they are checked.

    `fee_breakdown`, `overpayment`, `review` and `rejection` stay raw here: only some statuses read them.
    `partial` is kept as sent, because only a literal true counts.
    """

    id: str
    object: str
    version: Version
    status: str
    is_terminal: bool | None = None
    late_slip_accepted_until: str | None = None
    ordered_amount_minor: Bigint | None = None
    transferred_amount_minor: Bigint | None = None
    amount_received_minor: Bigint | None = None
    fee_total_minor: Bigint | None = None
    credited_amount_minor: Bigint | None = None
    fee_breakdown: msgspec.Raw = msgspec.Raw(b"null")
    overpayment: msgspec.Raw = msgspec.Raw(b"null")
    balance_transaction_id: str | None = None
    clearing_available_at: str | None = None
    partial: msgspec.Raw = msgspec.Raw(b"null")
    cancel_reason_code: str | None = None
    review: msgspec.Raw = msgspec.Raw(b"null")
    rejection: msgspec.Raw = msgspec.Raw(b"null")


class DepositData(msgspec.Struct, frozen=True, gc=False):
    """`data` of a deposit event."""

    object: DepositObject


class DepositEvent(msgspec.Struct, frozen=True, gc=False):
    """A `deposit.*` event; `created_at` is text as sent."""

    id: str
    type: str
    created_at: str
    data: DepositData


Smallint = Annotated[int, msgspec.Meta(ge=-(1 << 15), le=(1 << 15) - 1)]
"""A whole number that PostgreSQL's smallint can keep."""


class WithdrawalObject(msgspec.Struct, frozen=True, gc=False):
    """`data.object` of a withdrawal order. Amounts are satang; a snapshot may be sparse: absent is not known.

    `metadata` stays raw: only its members ticket and payout_id are looked at, and it may be anything.
    """

    id: str
    object: str
    version: Version
    status: str
    merchant_reference: str | None = None
    amount_total_minor: Bigint | None = None
    fee_total_minor: Bigint | None = None
    total_locked_minor: Bigint | None = None
    filled_minor: Bigint | None = None
    remaining_minor: Bigint | None = None
    refunded_minor: Bigint | None = None
    fee_recognized_minor: Bigint | None = None
    settled_splits: Smallint | None = None
    max_splits: Smallint | None = None
    metadata: msgspec.Raw = msgspec.Raw(b"null")


class WithdrawalData(msgspec.Struct, frozen=True, gc=False):
    """`data` of a withdrawal event; `fill` and `reversal` stay raw: only two types of event read them."""

    object: WithdrawalObject
    fill: msgspec.Raw = msgspec.Raw(b"null")
    reversal: msgspec.Raw = msgspec.Raw(b"null")
    replacement_withdrawal_id: msgspec.Raw = msgspec.Raw(b"null")


class WithdrawalEvent(msgspec.Struct, frozen=True, gc=False):
    """A `withdrawal.*` event; `created_at` is text as sent."""

    id: str
    type: str
    created_at: str
    data: WithdrawalData


NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]
"""A text of at least one character."""

WITHDRAWAL_FILLED = "withdrawal.filled"
WITHDRAWAL_FILL_REVERSED = "withdrawal.fill_reversed"
"""The two types of event that carry a fact; every other type only tells the order's state."""


class FillBody(msgspec.Struct, frozen=True, gc=False):
    """`data.fill` of `withdrawal.filled`: one chunk that was paid out. Amounts are satang; dates are text."""

    leg_ref: NonEmpty
    amount_minor: Bigint
    sequence: Smallint | None = None
    fee_recognized_minor: Bigint | None = None
    settled_at: str | None = None
    auto_confirm_at: str | None = None
    balance_transaction_id: str | None = None


class ReversedFillBody(msgspec.Struct, frozen=True, gc=False):
    """`data.fill` of `withdrawal.fill_reversed`: what identifies the chunk that was taken back (satang)."""

    leg_ref: NonEmpty
    amount_minor: Bigint
    balance_transaction_id: str


class ReversalBody(msgspec.Struct, frozen=True, gc=False):
    """`data.reversal` of `withdrawal.fill_reversed`."""

    reason_code: str
    reverses_balance_transaction_id: NonEmpty
    balance_transaction_id: NonEmpty


class TransactionSource(msgspec.Struct, frozen=True, gc=False):
    """What a balance transaction came from."""

    id: str | None = None


class TransactionObject(msgspec.Struct, frozen=True, gc=False):
    """`data.object` of a balance transaction: immutable, without a version. Amounts are satang."""

    id: str
    object: str
    type: str
    direction: str
    amount_minor: Bigint
    created_at: str
    bucket_from: str | None = None
    bucket_to: str | None = None
    source: TransactionSource | None = None
    balance_after: msgspec.Raw = msgspec.Raw(b"null")


class TransactionData(msgspec.Struct, frozen=True, gc=False):
    """`data` of a balance event."""

    object: TransactionObject


class TransactionEvent(msgspec.Struct, frozen=True, gc=False):
    """A `balance.*` event."""

    id: str
    type: str
    created_at: str
    data: TransactionData


DEPOSIT_KIND = "deposit_order"
WITHDRAWAL_KIND = "withdrawal_order"
BALANCE_TRANSACTION_KIND = "balance_transaction"
