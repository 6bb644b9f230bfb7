"""Parked events: found again when the correlation that they wait for has been written."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tallyhook.postgres import Connection, Queries

OBJECTS_MAX = 1000
_START = "0"


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many events wait for one reason, and since when."""

    reason: str
    events: int
    oldest: datetime


class Parking:
    """Looks for objects that can go on.

    It asks which correlations were written since it last looked, and which of these have events that wait: the cost
    follows the new correlations, not the number of parked events. A transaction id marks "since", because the order of
    commits is not that of any counter.

    Args:
        connection: autocommit, outside of a batch's transaction.
        schema: the installation's schema.
    """

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._queries = Queries("sinks", "sql/parking.sql", schema)
        self._horizon = _START

    def look_at_all(self) -> None:
        """The next look goes over every correlation: partitions were claimed whose earlier looks were another's."""
        self._horizon = _START

    def find_ready(self, partitions: Sequence[int]) -> list[str]:
        """Ids of objects in these partitions whose events can go on, at most 1,000."""
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

    def count(self, partitions: Sequence[int]) -> list[Waiting]:
        """What waits in these partitions, by reason."""
        rows = self._connection.execute(self._queries["count"], (list(partitions),)).fetchall()
        return [Waiting(*row) for row in rows]
