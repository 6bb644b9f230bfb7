"""A batch's plan: every row that its transaction will write, gathered before anything is written."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from schemas.headers import EventHeaders
from schemas.reasons import Reason
from schemas.verdicts import ParkedReason, SinkVerdict
from sinks.domain.decision import DepositState, EntryDraft, FlagDraft, Refusal
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
class SetAside:
    """An arrival that is quarantined, and why."""

    arrival: Arrival
    refusal: Refusal


@dataclass(slots=True)
class Plan:
    """Rows in the order in which they are written, and the positions after them."""

    positions: dict[int, Position]
    inbox: list[InboxRow] = field(default_factory=list)
    finished: list[InboxRow] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    deposits: dict[str, DepositState] = field(default_factory=dict)
    flags: dict[str, FlagDraft] = field(default_factory=dict)
    entries: list[EntryRow] = field(default_factory=list)
    outbox: list[OutboxRow] = field(default_factory=list)
    redeliveries: list[Arrival] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)
    resolved: list[tuple[str, str]] = field(default_factory=list)
    replayed: int = 0
    reversal_differs: int = 0


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
        self.verdicts.update(row.verdict for row in plan.inbox)
        self.verdicts.update(row.verdict for row in plan.finished)
        self.verdicts["redelivered"] += len(plan.redeliveries)
        self.verdicts["quarantined"] += len(plan.set_aside)
        self.quarantined.update(row.refusal.reason for row in plan.set_aside)
        self.finished += len(plan.finished) + len(plan.dropped)
        self.advanced += len(plan.deposits)
        self.reversal_differs += plan.reversal_differs
        self.effects.update(row.name for row in plan.outbox)
        self.positions.update({number: position.next_offset for number, position in plan.positions.items()})


def copies(positions: Mapping[int, Position]) -> dict[int, Position]:
    """Positions to be moved apart from those that are held."""
    return {number: position.copy() for number, position in positions.items()}
