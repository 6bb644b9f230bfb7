"""What the database knows of a batch; the overlay carries it on as the batch is decided."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sinks.domain.decision import Correlation, DepositState, FlagDraft
from sinks.domain.withdrawal_state import Fill, Tombstone, Transaction, WithdrawalState
from sinks.plan import Position
from sinks.records import Arrival


@dataclass(frozen=True, slots=True)
class Known:
    """An event of the inbox: the delivery that brought it, and what it was about."""

    source_partition: int
    source_offset: int
    object_id: str
    version: int | None


class KnownFacts:
    """Chunks and reversals that the events of a batch ask for, whatever withdrawal they belong to."""

    def __init__(self) -> None:
        self._fills: dict[str, Fill] = {}
        self._tombstones: dict[str, Tombstone] = {}
        self._by_transaction: dict[str, Tombstone] = {}

    def add(self, fills: Iterable[Fill], tombstones: Iterable[Tombstone]) -> None:
        """Takes up facts that are stored or were decided; a fill that is known already is replaced."""
        for fill in fills:
            self._fills[fill.leg_ref] = fill
        for tombstone in tombstones:
            self._tombstones[tombstone.leg_ref] = tombstone
            self._by_transaction[tombstone.reverses_balance_transaction_id] = tombstone
            self._by_transaction[tombstone.reversal_balance_transaction_id] = tombstone

    def fill(self, leg_ref: str) -> Fill | None:
        """The chunk of that name."""
        return self._fills.get(leg_ref)

    def tombstone(self, leg_ref: str) -> Tombstone | None:
        """The reversal of that chunk."""
        return self._tombstones.get(leg_ref)

    def tombstone_of(self, transaction_id: str) -> Tombstone | None:
        """The reversal that names the balance transaction, as the reversed or as the reversing one."""
        return self._by_transaction.get(transaction_id)


@dataclass(slots=True)
class Loaded:
    """What the database knows of a batch, read under the fence.

    Args:
        positions: the fence's rows.
        seen: events of the inbox, by id.
        parked: events that waited and can go on now, in order of arrival; they are decided first.
        waiting: by withdrawal without a row, all events that wait for it, in order of arrival; they are decided when an
            event of the batch has built it.
        left: withdrawals without a row whose waiting events were too many to be read: nothing after the event that
            builds such a row may be decided in the same transaction.
        set_aside_before: events of which an open row stands in quarantine.
    """

    positions: Mapping[int, Position]
    seen: dict[str, Known] = field(default_factory=dict)
    deposits: dict[str, DepositState] = field(default_factory=dict)
    correlations: dict[str, Correlation] = field(default_factory=dict)
    flags: dict[str, FlagDraft] = field(default_factory=dict)
    withdrawals: dict[str, WithdrawalState] = field(default_factory=dict)
    facts: KnownFacts = field(default_factory=KnownFacts)
    transactions: dict[str, Transaction] = field(default_factory=dict)
    parked: list[Arrival] = field(default_factory=list)
    waiting: dict[str, list[Arrival]] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    set_aside_before: set[str] = field(default_factory=set)
