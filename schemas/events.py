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


DEPOSIT_KIND = "deposit_order"
WITHDRAWAL_KIND = "withdrawal_order"
BALANCE_TRANSACTION_KIND = "balance_transaction"
