"""A batch's plan: every row that its transaction will write, gathered before anything is written."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from schemas.headers import EventHeaders
from schemas.reasons import Reason
from schemas.verdicts import ParkedReason, SinkVerdict
from sinks.domain.decision import DepositState, EntryDraft, FlagDraft, Refusal
from sinks.domain.withdrawal_state import Fill, Tombstone, Transaction, Withdrawal
from sinks.records import Arrival


@dataclass(slots=True)
class Position:
    """The fence row of one partition as its owner holds it.

    Args:
        epoch: rises with each claim.
        next_offset: the first offset of `state-changes` that is not applied.
        next_outbox_seq, next_arrival_seq: the next numbers of the outbox and of the inbox.
    """

    epoch: int
    next_offset: int
    next_outbox_seq: int
    next_arrival_seq: int

    def copy(self) -> "Position":
        """The same values, to be moved apart."""
        return Position(self.epoch, self.next_offset, self.next_outbox_seq, self.next_arrival_seq)


@dataclass(frozen=True, slots=True)
class InboxRow:
    """A new event and what was decided about it; a parked one has a reason to wait and is not processed."""

    arrival: Arrival
    headers: EventHeaders
    arrival_seq: int
    verdict: SinkVerdict
    reason: Reason | None
    parked: ParkedReason | None = None


@dataclass(slots=True)
class EntryRow:
    """A balance entry; the balance after it is known once the user's row is locked (satang)."""

    draft: EntryDraft
    event_id: str
    pg_deposit_id: str
    our_order_id: str
    balance_after_minor: int = 0


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """An effect, or a balance entry whose payload follows from its row; both name the event that caused them."""

    arrival: Arrival
    headers: EventHeaders
    seq: int
    name: str
    payload: bytes | EntryRow
    dedupe_key: str
    version: int


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A balance transaction, and whose it is."""

    transaction: Transaction
    merchant_id: str


@dataclass(slots=True)
class SetAside:
    """An arrival that is quarantined, and why.

    Args:
        applied: a later copy of the event was applied by the same batch, so that nobody has to look at this one.
    """

    arrival: Arrival
    refusal: Refusal
    applied: bool = False


@dataclass(slots=True)
class Plan:
    """Every row of a batch, and the positions after it.

    Args:
        inbox: new events by id, in order of arrival.
        finished, dropped: events that had waited in the inbox and were applied, or were set aside.
        withdrawals: rows that are new or whose version rises.
        marked: rows of which only markers and members that are set once change, at the version that is stored.
        fills, reversals: chunks and their reversals seen for the first time, by leg_ref.
        fill_marks: stored chunks (leg_ref) that are to be marked as reversed.
        unfilled: legs of `reversals` without a chunk: none may come up while the transaction lasts.
        resolved: events (id, object id) that stood in quarantine and are in the inbox now.
    """

    positions: dict[int, Position]
    inbox: dict[str, InboxRow] = field(default_factory=dict)
    finished: list[InboxRow] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    deposits: dict[str, DepositState] = field(default_factory=dict)
    flags: dict[str, FlagDraft] = field(default_factory=dict)
    withdrawals: dict[str, Withdrawal] = field(default_factory=dict)
    marked: dict[str, Withdrawal] = field(default_factory=dict)
    fills: dict[str, Fill] = field(default_factory=dict)
    fill_marks: dict[str, datetime] = field(default_factory=dict)
    reversals: dict[str, Tombstone] = field(default_factory=dict)
    unfilled: set[str] = field(default_factory=set)
    transactions: dict[str, TransactionRow] = field(default_factory=dict)
    entries: list[EntryRow] = field(default_factory=list)
    outbox: list[OutboxRow] = field(default_factory=list)
    redeliveries: list[Arrival] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)
    resolved: list[tuple[str, str]] = field(default_factory=list)
    replayed: int = 0
    reversal_differs: int = 0
    fee_differs: int = 0

    def close_set_aside(self, headers: EventHeaders) -> None:
        """The event is applied now: what this very batch set aside of it before is closed, as a later batch would."""
        for row in self.set_aside:
            known = row.arrival.headers
            if known is not None and (known.id, known.subject) == (headers.id, headers.subject):
                row.applied = True


@dataclass(slots=True)
class BatchResult:
    """What one or more transactions did.

    Args:
        taken: records that are behind the positions now, read again or not.
        replayed: of these, deliveries that were known as such.
        verdicts: new and parked events and redeliveries by verdict, quarantined ones too.
        quarantined: by reason.
        finished: parked events that were applied or set aside.
        advanced: aggregates whose version rose.
        reversal_differs, fee_differs: deposits' reversals and withdrawals' chunks that name another amount than is due.
        effects: by name, balance entries too.
        repeated: transactions that were rolled back and decided anew, by cause.
        stopped: too many were quarantined; the records after them were not taken.
        positions: the next offset by partition.
        seconds: by step.
    """

    taken: int = 0
    replayed: int = 0
    verdicts: Counter[SinkVerdict] = field(default_factory=Counter)
    quarantined: Counter[Reason] = field(default_factory=Counter)
    finished: int = 0
    advanced: int = 0
    reversal_differs: int = 0
    fee_differs: int = 0
    effects: Counter[str] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    stopped: bool = False
    positions: dict[int, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add_plan(self, plan: Plan, taken: int, stopped: bool) -> None:
        """Counts what a committed plan held."""
        self.taken += taken
        self.stopped = self.stopped or stopped
        self.replayed += plan.replayed
        self.verdicts.update(row.verdict for row in plan.inbox.values())
        self.verdicts.update(row.verdict for row in plan.finished)
        self.verdicts["redelivered"] += len(plan.redeliveries)
        self.verdicts["quarantined"] += len(plan.set_aside)
        self.quarantined.update(row.refusal.reason for row in plan.set_aside)
        self.finished += len(plan.finished) + len(plan.dropped)
        self.advanced += len(plan.deposits) + len(plan.withdrawals)
        self.reversal_differs += plan.reversal_differs
        self.fee_differs += plan.fee_differs
        self.effects.update(row.name for row in plan.outbox)
        self.positions.update({number: position.next_offset for number, position in plan.positions.items()})


def copies(positions: Mapping[int, Position]) -> dict[int, Position]:
    """Positions to be moved apart from those that are held."""
    return {number: position.copy() for number, position in positions.items()}
