"""Parked events: found again when what they wait for is there, a deposit's correlation or a withdrawal's row."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tallyhook.clock import Clock, SystemClock
from tallyhook.postgres import Connection, Queries

OBJECTS_MAX = 1000
BUILT_CHECK_SECONDS = 30.0
"""A row that is there goes on with its waiting events at once, unless it was imported, or a crash came in between."""
_START = "0"


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many events wait for one reason, and since when."""

    reason: str
    events: int
    oldest: datetime


class Parking:
    """Looks for objects that can go on.

    For correlations it asks which were written since it last looked, and which of these have events that wait: the cost
    follows the new correlations, not the number of parked events. A transaction id marks "since", because the order of
    commits is not that of any counter. For rows it looks at all events that wait for one, which are few, and seldom.

    Args:
        connection: autocommit, outside of a batch's transaction.
        schema: the installation's schema.
    """

    def __init__(self, connection: Connection, schema: str, clock: Clock | None = None) -> None:
        self._connection, self._clock = connection, clock or SystemClock()
        self._queries = Queries("sinks", "sql/parking.sql", schema)
        self._horizon = _START
        self._built_looked_at = float("-inf")

    def look_at_all(self) -> None:
        """The next look goes over everything: partitions were claimed whose earlier looks were another's."""
        self._horizon = _START
        self._built_looked_at = float("-inf")

    def find_ready(self, partitions: Sequence[int]) -> list[str]:
        """Ids of deposits in these partitions whose correlation has come, at most 1,000."""
        row = self._connection.execute(
            self._queries["find_ready"],
            {"horizon": self._horizon, "partitions": list(partitions), "limit": OBJECTS_MAX},
        ).fetchone()
        if row is None:
            return []
        horizon, objects = row
        if len(objects) < OBJECTS_MAX:
            self._horizon = horizon
        return sorted(objects)

    def find_built(self, partitions: Sequence[int]) -> list[str]:
        """Ids of withdrawals in these partitions whose row is there, at most 1,000; looks every 30 s."""
        now = self._clock.monotonic_seconds()
        if now - self._built_looked_at < BUILT_CHECK_SECONDS:
            return []
        rows = self._connection.execute(
            self._queries["find_built"], {"partitions": list(partitions), "limit": OBJECTS_MAX}
        ).fetchall()
        if len(rows) < OBJECTS_MAX:
            self._built_looked_at = now
        return sorted(object_id for (object_id,) in rows)

    def count(self, partitions: Sequence[int]) -> list[Waiting]:
        """What waits in these partitions, by reason."""
        rows = self._connection.execute(self._queries["count"], (list(partitions),)).fetchall()
        return [Waiting(*row) for row in rows]
