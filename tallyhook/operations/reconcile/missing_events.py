"""Events that the gateway lists and that never came here: what the other checks cannot see once a later one came."""

from collections.abc import Iterator

import orjson

from tallyhook.operations.gaps import SEQUENCE_MAX, GapTable
from tallyhook.operations.gateway_api import GatewayApi, ListedEvent
from tallyhook.operations.reconcile.difference import Compared, Difference, Finding, Surroundings


class EventCheck:
    """Asks the gateway for every open number of the merchant's sequence.

    Args:
        table: the numbers that are missing.
    """

    def __init__(self, api: GatewayApi, around: Surroundings, table: GapTable) -> None:
        self._api, self._around, self._table = api, around, table

    def run(self) -> Iterator[Finding]:
        """A difference for each missing number that the gateway lists; one it does not list is none."""
        merchant, position, done = self._around.merchant, -1, 0
        total = self._table.count_open(merchant, -1, SEQUENCE_MAX)
        yield Compared("event", done, total)
        while (gap := self._table.next_open(merchant, position, SEQUENCE_MAX)) is not None:
            page = self._api.events(gap.first - 1)
            missing = self._missing(page.events)
            if missing:
                self._around.wait()
                missing = self._missing(missing)
            yield from map(_difference, missing)
            position = page.last
            left = self._table.count_open(merchant, position, SEQUENCE_MAX)
            done = max(done, total - left)
            yield Compared("event", done, total)
            if page.ends:
                return

    def _missing(self, events: list[ListedEvent]) -> list[ListedEvent]:
        open_now = self._table.open_among(self._around.merchant, [event.sequence for event in events])
        return [event for event in events if event.sequence in open_now]


def _difference(listed: ListedEvent) -> Difference:
    event = orjson.loads(listed.raw)
    data = event.get("data") if isinstance(event, dict) else None
    thing = data.get("object") if isinstance(data, dict) else None
    event_id = event.get("id") if isinstance(event, dict) else None
    event_type = event.get("type") if isinstance(event, dict) else None
    subject = thing.get("id") if isinstance(thing, dict) else None
    return Difference(
        "event",
        event_id if isinstance(event_id, str) else "(no id)",
        "missing here",
        "sequence",
        None,
        listed.sequence,
        f"{event_type} of {subject}; `tallyhook backfill --gaps` fetches it",
    )
