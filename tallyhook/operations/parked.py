"""What waits: events that are in the inbox and cannot be applied yet, for how long, and for what."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from schemas.reasons import REASONS, Explanation, Reason
from schemas.verdicts import ParkedReason
from tallyhook.postgres import Connection, Queries

OVERDUE_HOURS = 92.0
"""So long the gateway repeats an event; whatever is to come of itself has come by then."""


@dataclass(frozen=True, slots=True)
class ParkedEvent:
    """One event that waits.

    Args:
        reason: what it waits for: `correlation` or `snapshot`.
        received_at: when the door had it.
        age_hours: since then.
        overdue: it waits for more than 92 hours, so somebody must look.
    """

    event_id: str
    event_type: str
    object_id: str
    object_kind: str
    version: int | None
    sequence: int
    reason: str
    received_at: datetime
    age_hours: float
    overdue: bool

    @property
    def explanation(self) -> Explanation:
        """The reason in words, and the next step."""
        return REASONS[cast("Reason", self.reason)]


@dataclass(frozen=True, slots=True)
class ParkedEvents:
    """Those that wait longest, and how many there are.

    Args:
        total: that fit, shown or not.
        overdue: of these, those that wait for more than 92 hours.
    """

    events: Sequence[ParkedEvent]
    total: int
    overdue: int


def find(
    connection: Connection,
    schema: str,
    *,
    now: datetime,
    older_than_hours: float = 0.0,
    reason: ParkedReason | None = None,
    limit: int = 100,
) -> ParkedEvents:
    """The events that wait longest, oldest first.

    Args:
        now: the present moment, aware.
        older_than_hours: only those that wait longer.
        limit: most events to be shown.
    """
    queries = Queries("tallyhook.operations", "parked.sql", schema)
    wanted: dict[str, Any] = {
        "before": now - timedelta(hours=older_than_hours) if older_than_hours else None,
        "overdue_before": now - timedelta(hours=OVERDUE_HOURS),
        "reason": reason,
    }
    total, overdue = connection.execute(queries["measure"], wanted).fetchone() or (0, 0)
    rows = connection.execute(queries["find"], wanted | {"limit": limit}).fetchall()
    return ParkedEvents([_event(row, now) for row in rows], total, overdue)


def _event(row: Sequence[Any], now: datetime) -> ParkedEvent:
    event_id, event_type, object_id, kind, version, sequence, reason, received_at = row
    age_hours = (now - received_at) / timedelta(hours=1)
    overdue = age_hours > OVERDUE_HOURS
    return ParkedEvent(
        event_id, event_type, object_id, kind, version, sequence, reason, received_at, age_hours, overdue
    )
