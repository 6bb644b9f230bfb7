"""Everything that the database has of an object, object by object: sorted walks over the tables, merged.

In memory: the rows of one object and the rows that were fetched ahead.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from tallyhook.operations.audit.expected import Entry
from tallyhook.operations.audit.imported import Imported
from tallyhook.operations.audit.snapshot import Snapshot
from tallyhook.operations.audit.stored_event import DEPOSIT, TRANSACTION, WITHDRAWAL, InboxEvent, parse_json
from tallyhook.operations.audit.transactions import Transaction
from tallyhook.operations.audit.withdrawal_events import Fill, Tombstone
from tallyhook.operations.audit.withdrawals import COLUMNS
from tallyhook.operations.audit.withdrawals import Row as WithdrawalRow

Row = tuple[Any, ...]
WALKS = (
    *("inbox", "deposits", "entries", "flags", "withdrawals", "fills", "reversals", "transactions"),
    *("outbox", "imported"),
)


@dataclass(frozen=True, slots=True)
class DepositRow:
    """A row of pg_deposits and what the correlation of its deposit says (None: there is none)."""

    pg_version: int
    status: str
    is_terminal: bool | None
    late_slip_accepted_until: datetime | None
    ordered_amount_minor: int | None
    transferred_amount_minor: int | None
    amount_received_minor: int | None
    fee_total_minor: int | None
    credited_amount_minor: int | None
    fee_breakdown: str | None
    overpayment: str | None
    balance_transaction_id: str | None
    clearing_available_at: datetime | None
    our_order_id: str
    our_user_id: str
    credited: bool
    reversed: bool
    correlated_order_id: str | None
    correlated_user_id: str | None


@dataclass(frozen=True, slots=True)
class FlagRow:
    """A row of pg_deposit_overpayment_flags."""

    claim_id: str
    version: int
    cause: str
    amount_minor: int
    slip_received_at: datetime
    status: str
    action_required: str
    expected_response_at: datetime | None
    raw: str


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A row of pg_outbox."""

    partition: int
    seq: int
    aggregate_type: str
    type: str
    topic: str
    payload: str
    dedupe_key: str
    causation_id: str
    version: int
    created_at: datetime


@dataclass(slots=True)
class StoredObject:
    """One object: its events in the order of arrival, and what is stored of it."""

    id: str
    events: list[InboxEvent] = field(default_factory=list)
    deposit: DepositRow | None = None
    entries: dict[str, Entry] = field(default_factory=dict)
    flags: dict[str, FlagRow] = field(default_factory=dict)
    withdrawal: WithdrawalRow | None = None
    fills: dict[str, Fill] = field(default_factory=dict)
    tombstones: dict[str, Tombstone] = field(default_factory=dict)
    transaction: Transaction | None = None
    outbox: list[OutboxRow] = field(default_factory=list)
    imported: Imported | None = None

    @property
    def partition(self) -> int | None:
        """Where its events lie; None when there are none."""
        return self.events[0].partition if self.events else None

    @property
    def kinds(self) -> set[str]:
        """The kinds of objects of which an event, a row or an imported row has its id; hardly ever more than one."""
        found = {event.kind for event in self.events}
        if self.deposit is not None or self.entries or self.flags:
            found.add(DEPOSIT)
        if self.withdrawal is not None or self.fills or self.tombstones:
            found.add(WITHDRAWAL)
        if self.transaction is not None:
            found.add(TRANSACTION)
        if self.imported is not None:
            found |= self.imported.kinds
        return found

    def of_kind(self, kind: str) -> list[InboxEvent]:
        """Its events of one kind, in the order of arrival."""
        return [event for event in self.events if event.kind == kind]


def stored_objects(snapshot: Snapshot) -> Iterator[StoredObject]:
    """Every object that any of the tables knows, in the order of their ids' bytes."""
    walks = {name: groupby(snapshot.walk(name), key=itemgetter(0)) for name in WALKS}
    heads = {name: next(walk, None) for name, walk in walks.items()}
    while True:
        waiting = {name: head for name, head in heads.items() if head is not None}
        if not waiting:
            return
        # Code points are in the order of UTF-8's bytes, which is that of the collation "C".
        object_id = min(head[0] for head in waiting.values())
        made = StoredObject(object_id)
        for name, (key, rows) in waiting.items():
            if key == object_id:
                _add(made, name, rows)
                heads[name] = next(walks[name], None)
        yield made


def _add(made: StoredObject, name: str, rows: Iterator[Row]) -> None:
    for _, *row in rows:
        match name:
            case "inbox":
                made.events.append(InboxEvent(*row))
            case "deposits":
                made.deposit = DepositRow(*row)
            case "entries":
                made.entries[row[0]] = Entry(*row)
            case "flags":
                made.flags[row[0]] = FlagRow(*row)
            case "outbox":
                made.outbox.append(OutboxRow(*row))
            case _:
                _add_more(made, name, row)


def _add_more(made: StoredObject, name: str, row: list[Any]) -> None:
    match name:
        case "withdrawals":
            made.withdrawal = dict(zip(COLUMNS, row, strict=True))
        case "fills":
            made.fills[row[0]] = Fill(*row)
        case "reversals":
            made.tombstones[row[0]] = Tombstone(*row)
        case "transactions":
            row[-1] = parse_json(row[-1])
            made.transaction = Transaction(*row)
        case _:
            made.imported = made.imported or Imported()
            made.imported.add(*row)
