"""What the tables hold of one order, as the timeline reads it. Amounts are satang, moments are aware."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class WithdrawalRow:
    """A row of pg_withdrawals; None is not known."""

    pg_withdrawal_id: str
    pg_version: int
    status: str
    amount_total_minor: int
    fee_total_minor: int | None
    total_locked_minor: int | None
    filled_minor: int
    remaining_minor: int
    refunded_minor: int | None
    fee_recognized_minor: int | None
    settled_splits: int | None
    our_ref: str | None
    replacement_withdrawal_id: str | None
    closed_at: datetime | None
    refund_enqueued_at: datetime | None
    user_lock_released_at: datetime | None


@dataclass(frozen=True, slots=True)
class FillRow:
    """A row of pg_withdrawal_fills."""

    leg_ref: str
    sequence: int | None
    amount_minor: int
    fee_recognized_minor: int | None
    settled_at: datetime | None
    auto_confirm_at: datetime | None
    balance_transaction_id: str | None
    reversed_at: datetime | None


@dataclass(frozen=True, slots=True)
class ReversalRow:
    """A row of pg_withdrawal_fill_reversals."""

    leg_ref: str
    reason_code: str
    amount_minor: int
    reversed_at: datetime
    status_snapshot: str
    reverses_balance_transaction_id: str
    reversal_balance_transaction_id: str
    replacement_withdrawal_id: str | None
    effect_enqueued_at: datetime | None


@dataclass(frozen=True, slots=True)
class DepositRow:
    """A row of pg_deposits."""

    pg_deposit_id: str
    pg_version: int
    status: str
    is_terminal: bool | None
    late_slip_accepted_until: datetime | None
    ordered_amount_minor: int | None
    transferred_amount_minor: int | None
    amount_received_minor: int | None
    fee_total_minor: int | None
    credited_amount_minor: int | None
    our_order_id: str
    our_user_id: str
    credited_user_at: datetime | None
    reversed_at: datetime | None


@dataclass(frozen=True, slots=True)
class EntryRow:
    """A row of pg_user_balance_entries: a credit is above zero, a debit below."""

    entry_key: str
    user_id: str
    amount_minor: int
    event_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FlagRow:
    """A row of pg_deposit_overpayment_flags."""

    claim_id: str
    observed_deposit_version: int
    cause: str
    amount_minor: int
    slip_received_at: datetime
    expected_response_at: datetime | None


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A row of pg_balance_txns."""

    btxn_id: str
    type: str
    direction: str
    amount_minor: int
    bucket_from: str | None
    bucket_to: str | None
    source_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Newest:
    """The event that brought the row to its version, where the inbox still has it."""

    event_type: str
    event_raw: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """What the inbox and the quarantine hold of an object beside its row.

    Args:
        kinds: data.object.object of its events.
        parked: events that wait.
        set_aside: rows of the quarantine that are open.
    """

    kinds: tuple[str, ...] = ()
    parked: int = 0
    set_aside: int = 0


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A withdrawal with its chunks and reversals; the totals count what a limit leaves out."""

    row: WithdrawalRow
    fills: tuple[FillRow, ...] = ()
    reversals: tuple[ReversalRow, ...] = ()
    fills_total: int = 0
    reversals_total: int = 0
    newest: Newest | None = None
    waiting: Waiting = Waiting()


@dataclass(frozen=True, slots=True)
class Deposit:
    """A deposit with its balance entries and overpayment flags."""

    row: DepositRow
    entries: tuple[EntryRow, ...] = ()
    flags: tuple[FlagRow, ...] = ()
    newest: Newest | None = None
    waiting: Waiting = Waiting()


@dataclass(frozen=True, slots=True)
class Transaction:
    """A balance transaction; it has no versions."""

    row: TransactionRow


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An object that has no row yet.

    Args:
        announced: the merchant's own service knows it, and no event of it has come.
    """

    object_id: str
    waiting: Waiting
    announced: bool = False


Record = Withdrawal | Deposit | Transaction | Unfinished
