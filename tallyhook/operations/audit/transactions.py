"""What must come of the events of a balance transaction: the first one is kept, and nothing else happens."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from tallyhook.operations.audit.expected import Judgement, Outcome
from tallyhook.operations.audit.stored_event import InboxEvent, Unreadable, read, same_json
from tallyhook.operations.audit.withdrawal_events import instant, integer, text


@dataclass(frozen=True, slots=True)
class Transaction:
    """A balance transaction as pg_balance_txns keeps it (satang).

    Args:
        merchant_id: whose wallet.
        balance_after: what the event had as JSON, None for null; it is that of the first event.
    """

    type: str
    direction: str
    amount_minor: int
    bucket_from: str | None
    bucket_to: str | None
    source_id: str | None
    created_at: datetime
    merchant_id: str | None
    balance_after: object

    def is_same(self, other: "Transaction") -> bool:
        """Whether two observations agree; the balance after it and the merchant do not count."""
        return replace(self, merchant_id=None, balance_after=None) == replace(
            other, merchant_id=None, balance_after=None
        )

    def differences(self, other: "Transaction") -> list[str]:
        """The columns in which this row is another than `other` says."""
        names = [name for name in self.__slots__ if name != "balance_after"]
        differs = [
            f"{name} is {getattr(self, name)} instead of {getattr(other, name)}"
            for name in names
            if getattr(self, name) != getattr(other, name)
        ]
        return differs if same_json(self.balance_after, other.balance_after) else [*differs, "balance_after is another"]


@dataclass(slots=True)
class Movement:
    """A balance transaction's life so far.

    Args:
        kept: what was imported; None where the events begin its life.
        earlier_pruned: an older event may have brought it.
        first_is_pruned: it did, by what the first kept one is noted with.
    """

    id: str
    kept: Transaction | None = None
    earlier_pruned: bool = False
    first_is_pruned: bool = False
    outcome: Outcome = field(default_factory=Outcome)

    def apply_all(self, events: Iterable[InboxEvent]) -> None:
        """Applies events in the order of their arrival; none of them waits for anything."""
        for event in events:
            try:
                self._apply(event, read_transaction(event, self.id))
            except Unreadable as failure:
                self.outcome.unreadable.append((event, str(failure)))

    def _apply(self, event: InboxEvent, transaction: Transaction) -> None:
        if event.processed_at is None:
            raise Unreadable("it waits, though a balance transaction waits for nothing")
        reason = None
        if self.kept is not None:
            if not self.kept.is_same(transaction):
                raise Unreadable("the transaction is known with other content")
            reason = "already_recorded"
        elif self.earlier_pruned and event.reason == "already_recorded":
            self.first_is_pruned, reason = True, "already_recorded"
        self.kept = self.kept or transaction
        self.outcome.judgements.append(Judgement(event, "immutable", reason))


def read_transaction(event: InboxEvent, object_id: str) -> Transaction:
    """Raises Unreadable for an event that had to be quarantined, whatever is stored."""
    body = read(event, object_id)
    o = body["data"]["object"]
    kind, direction, amount = text(o, "type"), text(o, "direction"), integer(o, "amount_minor", bits=64)
    created_at, source = instant(o, "created_at"), o.get("source")
    if kind is None or direction is None or amount is None or created_at is None:
        raise Unreadable("data.object lacks type, direction, amount_minor or created_at")
    if source is not None and not isinstance(source, dict):
        raise Unreadable("data.object.source is no object")
    account = body.get("account")
    return Transaction(
        kind,
        direction,
        amount,
        text(o, "bucket_from"),
        text(o, "bucket_to"),
        text(source or {}, "id"),
        created_at,
        text(account, "merchant_id") if isinstance(account, dict) else None,
        o.get("balance_after"),
    )
