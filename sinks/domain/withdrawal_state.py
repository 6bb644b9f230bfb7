"""What is known of a withdrawal and of its chunks, and what one event does to them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from schemas.events import WithdrawalEvent
from schemas.reasons import Reason
from schemas.verdicts import SinkVerdict
from sinks.domain.decision import EffectDraft


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A row of pg_withdrawals (satang); None is SQL NULL.

    Args:
        closed: closed_at is set.
        close_enqueued: close_withdrawal left once; stays when the order is opened again.
        refund_enqueued, lock_released: likewise for refund_unfilled and release_user_lock.
    """

    pg_withdrawal_id: str
    pg_version: int
    status: str
    amount_total_minor: int
    remaining_minor: int
    filled_minor: int = 0
    fee_total_minor: int | None = None
    total_locked_minor: int | None = None
    refunded_minor: int | None = None
    fee_recognized_minor: int | None = None
    settled_splits: int | None = None
    max_splits: int | None = None
    our_ref: str | None = None
    replacement_withdrawal_id: str | None = None
    closed: bool = False
    close_enqueued: bool = False
    refund_enqueued: bool = False
    lock_released: bool = False


@dataclass(frozen=True, slots=True)
class Fill:
    """A row of pg_withdrawal_fills (satang); instants in UTC to the microsecond."""

    leg_ref: str
    pg_withdrawal_id: str
    amount_minor: int
    sequence: int | None = None
    fee_recognized_minor: int | None = None
    settled_at: datetime | None = None
    auto_confirm_at: datetime | None = None
    balance_transaction_id: str | None = None
    reversed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A row of pg_withdrawal_fill_reversals (satang).

    Args:
        status_snapshot: the status of the order in the event that brought it.
    """

    leg_ref: str
    pg_withdrawal_id: str
    reason_code: str
    reverses_balance_transaction_id: str
    reversal_balance_transaction_id: str
    reversed_at: datetime
    amount_minor: int
    status_snapshot: str
    replacement_withdrawal_id: str | None = None


@dataclass(frozen=True, slots=True)
class WithdrawalReading:
    """An event that has passed every rule that needs no stored row, read once.

    Args:
        our_ref: the merchant's own reference; None where the event does not carry it.
        fill: the chunk of a `withdrawal.filled`; None for every other type.
        tombstone: the reversal of a `withdrawal.fill_reversed`; None for every other type.
    """

    event: WithdrawalEvent
    our_ref: str | None = None
    fill: Fill | None = None
    tombstone: Tombstone | None = None


class Facts(Protocol):
    """Chunks and reversals that are known, whatever withdrawal they belong to."""

    def fill(self, leg_ref: str) -> Fill | None:
        """The chunk of that name."""

    def tombstone(self, leg_ref: str) -> Tombstone | None:
        """The reversal of that chunk."""

    def tombstone_of(self, transaction_id: str) -> Tombstone | None:
        """The reversal that names the balance transaction, as the reversed or as the reversing one."""


@dataclass(frozen=True, slots=True)
class WithdrawalState:
    """What is known of one withdrawal.

    Args:
        row: None when no row exists yet.
        settled_tombstone: one of its chunks was taken back by an event whose own snapshot was settled.
    """

    pg_withdrawal_id: str
    row: Withdrawal | None = None
    settled_tombstone: bool = False


@dataclass(frozen=True, slots=True)
class FactKeys:
    """What must be looked up before an event can be decided: its chunk, and the transactions of its reversal."""

    leg_ref: str
    transaction_ids: tuple[str, ...] = ()


class NotYet:
    """The row cannot be built from this event: it is parked until another one has built it."""


@dataclass(frozen=True, slots=True)
class WithdrawalDecision:
    """What one event does to one withdrawal.

    Args:
        state: the state after it; its row differs from the one before in version, or only in markers and in members
            that are set once, or it is the very same one.
        fill: a chunk to be kept, seen for the first time; already marked where its reversal is known.
        tombstone: a reversal to be kept, seen for the first time.
        fill_reversed: the stored chunk (leg_ref), not yet marked, that is to be marked as reversed at the instant.
        fee_differs: the chunk's fee is not the one that the running total gives (counted and shown, not corrected).
    """

    state: WithdrawalState
    verdict: SinkVerdict
    reason: Reason | None = None
    effects: tuple[EffectDraft, ...] = ()
    fill: Fill | None = None
    tombstone: Tombstone | None = None
    fill_reversed: tuple[str, datetime] | None = None
    fee_differs: bool = False


@dataclass(frozen=True, slots=True)
class Transaction:
    """A row of pg_balance_txns (satang).

    Args:
        balance_after: JSON as sent; None (SQL NULL) where absent or null.
    """

    btxn_id: str
    type: str
    direction: str
    amount_minor: int
    created_at: datetime
    bucket_from: str | None = None
    bucket_to: str | None = None
    source_id: str | None = None
    balance_after: bytes | None = None


@dataclass(frozen=True, slots=True)
class TransactionDecision:
    """What one balance event does: a transaction to be kept, or None when it is known with the same content."""

    transaction: Transaction | None
    reason: Reason | None = None
