"""What the gateway's API tells at a virtual moment. The shapes of pages and objects are assumed."""

from bisect import bisect_right
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeVar

from tallyhook.gateway.world.model import SimEvent, SimObject, SimTransaction, World

MAX_PAGE: Final = 100
CURRENCY: Final = "THB"

T = TypeVar("T")
ObjectKind = Literal["deposit_order", "withdrawal_order"]


class UnknownId(Exception):
    """No such id at this moment."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list.

    Args:
        items: JSON objects as bytes, in order.
        has_more: whether there is a next page.
    """

    items: tuple[bytes, ...]
    has_more: bool

    def as_json(self) -> bytes:
        """`{"data": [...], "has_more": ...}`; the events keep the very bytes that are signed."""
        return b'{"data":[%b],"has_more":%b}' % (b",".join(self.items), b"true" if self.has_more else b"false")


class Books:
    """A world as its API shows it.

    Args:
        unsubscribed: event types the merchant does not want: the list of events leaves them out.
    """

    def __init__(self, world: World, unsubscribed: Set[str] = frozenset()) -> None:
        self._world = world
        self._events: Sequence[SimEvent] = [event for event in world.events if event.type not in unsubscribed]
        self._by_event_id = {event.id: event for event in world.events}
        self._transactions = {transaction.id: index for index, transaction in enumerate(world.transactions)}
        self._objects: dict[str, list[SimObject]] = {"deposit_order": [], "withdrawal_order": []}
        for found in sorted(world.objects.values(), key=lambda one: one.created_at):
            self._objects.setdefault(found.kind, []).append(found)
        self._places = {one.id: index for listed in self._objects.values() for index, one in enumerate(listed)}

    def event(self, event_id: str, at: datetime) -> SimEvent:
        """The event of this id, once it was made; raises UnknownId."""
        found = self._by_event_id.get(event_id)
        if found is None or found.created_at > at:
            raise UnknownId
        return found

    def events(self, since_sequence: int, limit: int, at: datetime) -> Page:
        """Events with a higher sequence, ascending; those that were never delivered, too."""
        first = bisect_right(self._events, since_sequence, key=_sequence)
        end = bisect_right(self._events, at, key=_created)
        return _page(self._events, first, end, limit, lambda event: event.body)

    def balance(self, at: datetime) -> dict[str, object]:
        """A member `{bucket}_minor` for each bucket, in satang."""
        buckets = self._world.balance_at(at)
        return {"object": "balance", "currency": CURRENCY} | {f"{name}_minor": buckets[name] for name in buckets}

    def transactions(self, starting_after: str | None, limit: int, at: datetime) -> Page:
        """Movements of the wallet behind the given one, in order of creation; raises UnknownId."""
        listed = self._world.transactions
        end = bisect_right(listed, at, key=_moved)
        first = 0
        if starting_after is not None:
            first = self._transactions.get(starting_after, end) + 1
            if first > end:
                raise UnknownId
        return _page(listed, first, end, limit, lambda transaction: transaction.body)

    def objects(self, kind: ObjectKind, starting_after: str | None, limit: int, at: datetime) -> Page:
        """Orders of a kind behind the given one, in order of creation, as they are at the moment; raises UnknownId."""
        listed = self._objects[kind]
        end = bisect_right(listed, at, key=_begun)
        first = 0
        if starting_after is not None:
            first = self._place(kind, starting_after, end) + 1
        return _page(listed, first, end, limit, lambda one: _snapshot(one, at))

    def object(self, kind: ObjectKind, object_id: str, at: datetime) -> bytes:
        """The newest whole snapshot of an order; raises UnknownId."""
        end = bisect_right(self._objects[kind], at, key=_begun)
        return _snapshot(self._objects[kind][self._place(kind, object_id, end)], at)

    def _place(self, kind: ObjectKind, object_id: str, end: int) -> int:
        found = self._world.objects.get(object_id)
        if found is None or found.kind != kind or self._places[object_id] >= end:
            raise UnknownId
        return self._places[object_id]


def _page(listed: Sequence[T], first: int, end: int, limit: int, body: Callable[[T], bytes]) -> Page:
    last = min(end, first + limit)
    return Page(tuple(body(item) for item in listed[first:last]), has_more=last < end)


def _snapshot(one: SimObject, at: datetime) -> bytes:
    state = one.as_of(at)
    if state is None:
        raise UnknownId
    return state.snapshot


def _sequence(event: SimEvent) -> int:
    return event.sequence


def _created(event: SimEvent) -> datetime:
    return event.created_at


def _moved(transaction: SimTransaction) -> datetime:
    return transaction.created_at


def _begun(one: SimObject) -> datetime:
    return one.created_at
