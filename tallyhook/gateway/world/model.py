"""What a simulated world consists of: events, objects over time, movements of the wallet, correlations, and the end."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tallyhook.gateway.world.ending import ExpectedEnd


@dataclass(frozen=True, slots=True)
class SimEvent:
    """One event as the gateway made it.

    Args:
        id: visible ASCII, so that the header webhook-id can carry it.
        object_id: opaque text; may be Thai.
        object_kind: data.object.object.
        version: None for objects without versions.
        status: empty for objects without one.
        sequence: rises over all events of the merchant in order of creation, without a hole.
        created_at: virtual time, UTC, whole milliseconds.
        livemode: false is test traffic, which never touches live tables.
        body: the JSON that is signed.
        never_delivered: only the API tells of it.
    """

    id: str
    type: str
    object_id: str
    object_kind: str
    version: int | None
    status: str
    sequence: int
    created_at: datetime
    livemode: bool
    body: bytes
    never_delivered: bool


@dataclass(frozen=True, slots=True)
class Correlation:
    """A row of pg_deposit_correlations, as the merchant's own service writes it.

    Args:
        written_at: virtual time; before or after the deposit's first event. None is never: its events stay parked.
    """

    pg_deposit_id: str
    merchant_reference: str
    our_order_id: str
    our_user_id: str
    written_at: datetime | None


@dataclass(frozen=True, slots=True)
class ObjectState:
    """An object from one moment on.

    Args:
        at: virtual time from which the API shows it.
        snapshot: the whole object as JSON, also where the event of this version was sparse.
    """

    at: datetime
    version: int
    status: str
    snapshot: bytes


@dataclass(frozen=True, slots=True)
class SimObject:
    """A deposit or withdrawal order of live mode, through its life.

    Args:
        kind: deposit_order or withdrawal_order.
        scenario: the name of the life it lives.
        states: at least one, oldest first.
    """

    id: str
    kind: str
    scenario: str
    states: tuple[ObjectState, ...]

    @property
    def created_at(self) -> datetime:
        """Virtual time of the first state."""
        return self.states[0].at

    def as_of(self, moment: datetime) -> ObjectState | None:
        """The newest state at that virtual time; None before the first."""
        count = bisect_right(self.states, moment, key=lambda state: state.at)
        return self.states[count - 1] if count else None


@dataclass(frozen=True, slots=True)
class SimTransaction:
    """A movement of the merchant's wallet, in satang.

    Args:
        bucket_from: loses the amount; None is outside of the wallet.
        bucket_to: gains the amount; None is outside of the wallet.
        source_id: the order that caused it; None for top-ups.
        balance_after: satang by bucket, once this movement has happened.
        body: the balance_transaction as JSON.
    """

    id: str
    type: str
    direction: str
    amount_minor: int
    bucket_from: str | None
    bucket_to: str | None
    source_id: str | None
    created_at: datetime
    balance_after: Mapping[str, int]
    body: bytes


@dataclass(frozen=True, slots=True)
class World:
    """Everything that happens to one merchant, from first to last.

    Args:
        started_at: virtual time, UTC; nothing is earlier.
        events: in order of creation, test traffic included.
        objects: orders of live mode by id, in order of creation.
        transactions: in order of creation.
        correlations: one for each deposit of live mode.
        scenarios: how often each life was lived, by its name.
        expected: what must stand in the database once every event that is delivered has come, in whatever order.
        expected_complete: the same once those that are never delivered were fetched from the API too.
    """

    seed: int
    merchant_id: str
    started_at: datetime
    events: tuple[SimEvent, ...]
    objects: Mapping[str, SimObject]
    transactions: tuple[SimTransaction, ...]
    correlations: tuple[Correlation, ...]
    scenarios: Mapping[str, int]
    expected: ExpectedEnd
    expected_complete: ExpectedEnd

    @property
    def ended_at(self) -> datetime:
        """Virtual time of the last event."""
        return self.events[-1].created_at if self.events else self.started_at

    def balance_at(self, moment: datetime) -> Mapping[str, int]:
        """Satang by bucket at that virtual time: every bucket of the wallet, also the empty ones."""
        count = bisect_right(self.transactions, moment, key=lambda transaction: transaction.created_at)
        return self.transactions[count - 1].balance_after if count else dict.fromkeys(BUCKETS, 0)


BUCKETS = ("pending", "available", "locked")
"""Of the merchant's wallet. Which there are is an assumption: the gateway's pages name only available."""
