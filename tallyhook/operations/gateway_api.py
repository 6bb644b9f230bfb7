"""The shapes of the gateway's API: the one place that knows them.

Known is only which paths there are (`/v1/pay/events?since_sequence=`, `/v1/pay/balance`, and so on). How pages look,
how one goes on to the next, and how one is let in is ASSUMED; whoever learns it better changes this module alone.

- `Authorization: Bearer <key>`; a page is `{"data": [...], "has_more": true|false}`, at most 100 items.
- events: `since_sequence=N` gives events with a sequence above N, ascending.
- deposits, withdrawals, balance transactions: in order of creation; `starting_after=ID` goes on behind one.
- one deposit or withdrawal: its newest snapshot, whole; 404 for an id that is unknown.
- balance: `{"object": "balance", "pending_minor": n, "available_minor": n, ...}`, a member a bucket.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from tallyhook.operations.gateway_http import GatewayHttp, Query, UnexpectedAnswer, quoted

PAGE_ITEMS = 100
BUCKETS_MAX = 100
_SUFFIX = "_minor"

Listing = Literal["deposits", "withdrawals", "balance/transactions"]
Orders = Literal["deposits", "withdrawals"]


class _Page(msgspec.Struct, gc=False):
    data: list[msgspec.Raw]
    has_more: bool


class _Event(msgspec.Struct, gc=False):
    sequence: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class _Named(msgspec.Struct, gc=False):
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]


_decode_page = msgspec.json.Decoder(_Page).decode
_decode_event = msgspec.json.Decoder(_Event).decode
_decode_named = msgspec.json.Decoder(_Named).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


@dataclass(frozen=True, slots=True)
class ListedEvent:
    """One event that the gateway lists.

    Args:
        raw: its JSON, exactly as the answer has it.
    """

    sequence: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events above `since`, ascending.

    Args:
        ends: the list ends here.
    """

    since: int
    events: list[ListedEvent]
    ends: bool

    @property
    def last(self) -> int:
        """Up to this number the list is known now."""
        return self.events[-1].sequence if self.events else self.since


@dataclass(frozen=True, slots=True)
class ListedObject:
    """One object that the gateway lists, as JSON."""

    id: str
    raw: bytes


class GatewayApi:
    """What the gateway tells of one merchant. Every call may raise what `GatewayHttp.get` raises."""

    def __init__(self, http: GatewayHttp) -> None:
        self._http = http

    def events(self, since_sequence: int, limit: int = PAGE_ITEMS) -> EventPage:
        """Events with a higher number, at most 100."""
        limit = max(1, min(limit, PAGE_ITEMS))
        page = self._page("events", {"since_sequence": since_sequence, "limit": limit})
        events: list[ListedEvent] = []
        last = since_sequence
        for raw in page.data:
            try:
                sequence = _decode_event(raw).sequence
            except msgspec.MsgspecError as failure:
                raise UnexpectedAnswer(
                    f"the gateway lists an event behind {last} without a number: {failure}"
                ) from None
            if sequence <= last:
                raise UnexpectedAnswer(f"the gateway lists event {sequence} behind {last}: its list is not ascending")
            events.append(ListedEvent(sequence, bytes(raw)))
            last = sequence
        return EventPage(since_sequence, events, not page.has_more)

    def pages(self, listing: Listing, after: str | None = None) -> Iterator[list[ListedObject]]:
        """Every page of a list behind an object, or from its beginning, in order of creation."""
        while True:
            query: dict[str, str | int] = {"limit": PAGE_ITEMS}
            if after is not None:
                query["starting_after"] = after
            page = self._page(listing, query)
            try:
                objects = [ListedObject(_decode_named(raw).id, bytes(raw)) for raw in page.data]
            except msgspec.MsgspecError as failure:
                raise UnexpectedAnswer(f"the gateway lists one of {listing} without an id: {failure}") from None
            yield objects
            if not page.has_more:
                return
            if objects[-1].id == after:
                raise UnexpectedAnswer(f"the gateway's list of {listing} goes on behind {after} for ever")
            after = objects[-1].id

    def order(self, listing: Orders, object_id: str) -> ListedObject | None:
        """A deposit or withdrawal as of now; None where the gateway does not know it."""
        raw = self._http.get(f"/v1/pay/{listing}/{quoted(object_id)}")
        if raw is None:
            return None
        try:
            found = _decode_named(raw).id
        except (msgspec.MsgspecError, UnicodeDecodeError) as failure:
            raise UnexpectedAnswer(f"the gateway's answer for {object_id} is no object: {failure}") from None
        if found != object_id:
            raise UnexpectedAnswer(f"the gateway answers with {found} when asked for {object_id}")
        return ListedObject(object_id, raw)

    def balance(self) -> dict[str, int]:
        """Satang by bucket."""
        raw = self._need("/v1/pay/balance", None)
        try:
            members = _decode_members(raw)
            amounts = {
                name.removesuffix(_SUFFIX): msgspec.json.decode(value, type=int)
                for name, value in members.items()
                if name.endswith(_SUFFIX)
            }
        except (msgspec.MsgspecError, UnicodeDecodeError) as failure:
            raise UnexpectedAnswer(f"the gateway's balance cannot be read: {failure}") from None
        if not 0 < len(amounts) <= BUCKETS_MAX:
            raise UnexpectedAnswer(f"the gateway's balance has {len(amounts)} members that end in {_SUFFIX}")
        return amounts

    def close(self) -> None:
        """Ends the connection."""
        self._http.close()

    def _page(self, path: str, query: Query) -> _Page:
        raw = self._need(f"/v1/pay/{path}", query)
        try:
            page = _decode_page(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as failure:
            raise UnexpectedAnswer(f"the gateway's list of {path} is no page: {failure}") from None
        if len(page.data) > int(query["limit"]):
            raise UnexpectedAnswer(f"the gateway's list of {path} has {len(page.data)} items, asked for were fewer")
        if page.has_more and not page.data:
            raise UnexpectedAnswer(f"the gateway's list of {path} has an empty page that says there is more")
        return page

    def _need(self, path: str, query: Query | None) -> bytes:
        raw = self._http.get(path, query)
        if raw is None:
            raise UnexpectedAnswer(f"the gateway's API does not know {path}: check TALLYHOOK_GATEWAY_API_URL")
        return raw
