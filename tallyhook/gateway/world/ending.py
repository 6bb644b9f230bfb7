"""What must stand in the database at the end, whatever the order in which the events came."""

from collections.abc import Mapping
from dataclasses import dataclass

Value = str | int | bool | None


@dataclass(frozen=True, slots=True)
class ExpectedEffect:
    """An effect by its dedupe key.

    Args:
        effect: the outbox row's topic, such as release_goods.
        certain: it must be there; otherwise it may be, by the order of arrival.
        payload: every member, as JSON values.
    """

    dedupe_key: str
    effect: str
    certain: bool
    payload: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class ExpectedDeposit:
    """A row of pg_deposits and what hangs on it; amounts are satang, None is SQL NULL.

    Args:
        credit_minor: what the user was credited with, as long as it was not taken back: settled at the end.
        taken_back: reversed at the end: either credited and debited, or (the reversal came first) neither.
        claims: claim_id -> cause and amount of each overpayment flag that must be kept.
        projected_claim: claim_id in the row's own overpayment column.
    """

    id: str
    version: int
    status: str
    our_order_id: str
    our_user_id: str
    ordered_amount_minor: int | None
    transferred_amount_minor: int | None
    amount_received_minor: int | None
    fee_total_minor: int | None
    credited_amount_minor: int | None
    credit_minor: int | None
    taken_back: bool
    claims: Mapping[str, tuple[str, int]]
    projected_claim: str | None
    effects: tuple[ExpectedEffect, ...]


@dataclass(frozen=True, slots=True)
class ExpectedFill:
    """A row of pg_withdrawal_fills, in satang."""

    leg_ref: str
    amount_minor: int
    fee_recognized_minor: int
    balance_transaction_id: str
    reversed: bool


@dataclass(frozen=True, slots=True)
class ExpectedTombstone:
    """A row of pg_withdrawal_fill_reversals, in satang."""

    leg_ref: str
    amount_minor: int
    reason_code: str
    reverses_balance_transaction_id: str
    reversal_balance_transaction_id: str
    replacement_withdrawal_id: str | None


@dataclass(frozen=True, slots=True)
class ExpectedWithdrawal:
    """A row of pg_withdrawals and what hangs on it; amounts are satang, None is SQL NULL.

    Args:
        refunded_minor, fee_recognized_minor, settled_splits: every value that some order of arrival leaves.
        closed: None where the order of arrival decides.
        fills, tombstones: in order of creation.
    """

    id: str
    version: int
    status: str
    our_ref: str | None
    amount_total_minor: int
    fee_total_minor: int | None
    total_locked_minor: int | None
    max_splits: int | None
    filled_minor: int
    remaining_minor: int
    refunded_minor: frozenset[int | None]
    fee_recognized_minor: frozenset[int | None]
    settled_splits: frozenset[int | None]
    replacement_withdrawal_id: str | None
    closed: bool | None
    refund_enqueued: bool
    user_lock_released: bool
    fills: tuple[ExpectedFill, ...]
    tombstones: tuple[ExpectedTombstone, ...]
    effects: tuple[ExpectedEffect, ...]


@dataclass(frozen=True, slots=True)
class ExpectedTransaction:
    """A row of pg_balance_txns, in satang."""

    id: str
    type: str
    direction: str
    amount_minor: int
    bucket_from: str | None
    bucket_to: str | None
    source_id: str | None


@dataclass(frozen=True, slots=True)
class ExpectedEnd:
    """The end of a world.

    Args:
        deposits, withdrawals: by id; deposits whose correlation never comes have no row.
        user_balances: satang by user, of every user that a deposit belongs to.
        transactions: by id.
        processed: ids of events that stand processed in the inbox.
        parked: event id -> reason (correlation or snapshot): they wait for ever.
        absent: ids of test events, and of those that did not come: they stand nowhere.
        absent_objects: ids of objects that have no row.
    """

    deposits: Mapping[str, ExpectedDeposit]
    withdrawals: Mapping[str, ExpectedWithdrawal]
    user_balances: Mapping[str, int]
    transactions: Mapping[str, ExpectedTransaction]
    processed: frozenset[str]
    parked: Mapping[str, str]
    absent: frozenset[str]
    absent_objects: frozenset[str]

    @property
    def bucket_sums(self) -> Mapping[str, int]:
        """What the recorded movements add up to, satang by bucket: with every event, the gateway's own balance."""
        sums: dict[str, int] = {}
        for transaction in self.transactions.values():
            if transaction.bucket_from is not None:
                sums[transaction.bucket_from] = sums.get(transaction.bucket_from, 0) - transaction.amount_minor
            if transaction.bucket_to is not None:
                sums[transaction.bucket_to] = sums.get(transaction.bucket_to, 0) + transaction.amount_minor
        return sums

    @property
    def inbox_count(self) -> int:
        """Rows of the inbox that belong to this world."""
        return len(self.processed) + len(self.parked)
