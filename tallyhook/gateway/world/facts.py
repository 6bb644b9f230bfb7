"""What each event of an order says, told by the life that made it; the expected end is computed from these alone."""

from collections.abc import Mapping
from dataclasses import dataclass

from tallyhook.gateway.world.ending import ExpectedFill, ExpectedTombstone, Value


@dataclass(frozen=True, slots=True)
class Shown:
    """The effect that an event has when it advances its object, keyed by the event."""

    effect: str
    payload: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Amounts:
    """The five amounts of a deposit, in satang; None where its snapshot does not have one yet."""

    ordered: int | None = None
    transferred: int | None = None
    received: int | None = None
    fee: int | None = None
    credited: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """An overpayment flag: its amount in satang."""

    claim_id: str
    cause: str
    amount_minor: int


@dataclass(frozen=True, slots=True)
class DepositFact:
    """One event of a deposit.

    Args:
        shown: None for settled and reversed, whose effects are keyed by the deposit.
        partial: less was transferred than ordered, and the event says so.
    """

    event_id: str
    object_id: str
    version: int
    status: str
    amounts: Amounts
    claim: Claim | None
    partial: bool
    shown: Shown | None


@dataclass(frozen=True, slots=True)
class DepositTerms:
    """What is fixed in a deposit's life, as the merchant's own service knows it.

    Args:
        correlated: whether the merchant's service ever writes the correlation.
    """

    object_id: str
    our_order_id: str
    our_user_id: str
    correlated: bool


@dataclass(frozen=True, slots=True)
class WithdrawalFact:
    """One event of a withdrawal; amounts are satang, None where the event does not carry one.

    Args:
        whole: it carries what a row is built from.
        fill: the chunk that it appends.
        tombstone: the reversal that it appends.
        shown: None where the status has a one-shot effect, and for reversals.
    """

    event_id: str
    object_id: str
    version: int
    status: str
    filled_minor: int
    remaining_minor: int
    refunded_minor: int | None
    fee_recognized_minor: int | None
    settled_splits: int | None
    whole: bool
    fill: ExpectedFill | None
    tombstone: ExpectedTombstone | None
    shown: Shown | None


@dataclass(frozen=True, slots=True)
class WithdrawalTerms:
    """What is fixed in a withdrawal's life; amounts are satang.

    Args:
        our_ref: None where no event carries a reference.
    """

    object_id: str
    our_ref: str | None
    amount_total_minor: int
    fee_total_minor: int
    total_locked_minor: int
    max_splits: int
