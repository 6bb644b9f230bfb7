"""Balance transactions: movements of the merchant's wallet at the gateway, immutable and without a version.

They are recorded for reconciliation; no effect hangs on them.
Source: the gateway's page on event order, on `balance_transaction`.
"""

from schemas.events import TransactionEvent
from sinks.domain.decision import Refusal
from sinks.domain.instants import instant
from sinks.domain.shape import parser
from sinks.domain.shown import shown
from sinks.domain.withdrawal_state import Transaction, TransactionDecision

_CONTENT = ("type", "direction", "amount_minor", "bucket_from", "bucket_to", "source_id", "created_at")
"""What two observations of one transaction must agree on; the balance after it is a snapshot for cross-checks only."""

parse = parser(TransactionEvent)
"""The typed event of bytes that have passed `read_text`, or why they are none."""


def read(event: TransactionEvent) -> Transaction | Refusal:
    """The transaction of an event, or why it may not be kept."""
    moved = event.data.object
    created_at = instant(moved.created_at)
    if created_at is None:
        return Refusal("body_date", f"data.object.created_at is {shown(moved.created_at)}")
    balance_after = bytes(moved.balance_after)
    return Transaction(
        moved.id,
        moved.type,
        moved.direction,
        moved.amount_minor,
        created_at,
        moved.bucket_from,
        moved.bucket_to,
        None if moved.source is None else moved.source.id,
        None if balance_after == b"null" else balance_after,
    )


def decide(stored: Transaction | None, transaction: Transaction) -> TransactionDecision | Refusal:
    """Whether a transaction is to be kept; the first one of an id stays, and what contradicts it is refused."""
    if stored is None:
        return TransactionDecision(transaction)
    differing = [name for name in _CONTENT if getattr(stored, name) != getattr(transaction, name)]
    if differing:
        detail = f"balance transaction {shown(stored.btxn_id)} is known with another {', '.join(differing)}"
        return Refusal("transaction_collision", detail)
    return TransactionDecision(None, "already_recorded")
