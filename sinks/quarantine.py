"""Quarantine: what is set aside with its bytes, and the bound on how much of it is still normal."""

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.reasons import Reason
from sinks.domain.decision import Refusal
from sinks.plan import SetAside
from sinks.records import RecordHeaders, Source
from tallyhook.postgres import Connection, Queries

WINDOW_EVENTS = 1000
DETAIL_CHARS_MAX = 2000
INDEXED_BYTES_MAX = 2048
"""An index of PostgreSQL takes no key above a third of a page; a longer id is kept in the headers alone."""


class QuarantineWindow:
    """How many of the last 1,000 events were quarantined.

    Args:
        limit: more than this many mean that something else is wrong than the events.

    Attributes:
        outcomes: of the last events, oldest first: whether each was quarantined.
        quarantined: how many of them were.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.outcomes: deque[bool] = deque(maxlen=WINDOW_EVENTS)
        self.quarantined = 0

    def note(self, *, quarantined: bool) -> None:
        """One more event."""
        if len(self.outcomes) == WINDOW_EVENTS:
            self.quarantined -= self.outcomes[0]
        self.outcomes.append(quarantined)
        self.quarantined += quarantined

    @property
    def exceeded(self) -> bool:
        """More than the limit."""
        return self.quarantined > self.limit

    def adopt(self, other: "QuarantineWindow") -> None:
        """Takes over the outcomes of a copy whose transaction was committed."""
        self.outcomes, self.quarantined = other.outcomes, other.quarantined

    def copy(self) -> "QuarantineWindow":
        """The same, to be moved apart until a transaction commits."""
        made = QuarantineWindow(self.limit)
        made.outcomes, made.quarantined = self.outcomes.copy(), self.quarantined
        return made


@dataclass(frozen=True, slots=True)
class QuarantinedRow:
    """One row of quarantined_events.

    Args:
        stage: who set it aside: ingress, streams or sinks.
        raw: the original bytes.
        headers: the record's headers.
        source: the delivery's identity; a second row of it is never written.
        applied: the event was applied by a later copy, so that the row is written as redriven.
    """

    stage: str
    reason: str
    detail: str
    event_id: str | None
    object_id: str | None
    raw: bytes
    headers: RecordHeaders
    source: Source
    applied: bool = False


def row_of(row: SetAside) -> QuarantinedRow:
    """The row of an arrival that the sink sets aside."""
    arrival, refusal = row.arrival, row.refusal
    known = arrival.headers
    return QuarantinedRow(
        "sinks",
        refusal.reason,
        refusal.detail,
        known.id if known is not None else None,
        known.subject if known is not None else None,
        arrival.raw,
        arrival.record_headers,
        arrival.source,
        row.applied,
    )


def add(connection: Connection, queries: Queries, rows: Sequence[QuarantinedRow]) -> None:
    """Writes the rows in the caller's transaction; deliveries that are there already stay as they are."""
    connection.execute(
        queries["add"],
        (
            [row.stage for row in rows],
            [row.reason for row in rows],
            [safe_text(row.detail)[:DETAIL_CHARS_MAX] for row in rows],
            [_indexed(row.event_id) for row in rows],
            [_indexed(row.object_id) for row in rows],
            [row.raw for row in rows],
            [safe_headers(row.headers) for row in rows],
            [row.source.topic for row in rows],
            [row.source.partition for row in rows],
            [row.source.offset for row in rows],
            [row.applied for row in rows],
        ),
    )


def _indexed(value: str | None) -> str | None:
    kept = None if value is None else safe_text(value)
    return kept if kept is not None and len(kept.encode()) <= INDEXED_BYTES_MAX else None


def safe_text(value: str | bytes) -> str:
    """Text that PostgreSQL keeps: what is no UTF-8, NULs and lone surrogates become visible escapes."""
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
    return text.replace("\0", "\\x00").encode(errors="backslashreplace").decode()


def safe_headers(headers: RecordHeaders) -> str:
    """The headers as a JSON object of text, the first of each name, as everywhere."""
    kept: dict[str, str] = {}
    for name, value in headers:
        if value is not None:
            kept.setdefault(safe_text(name), safe_text(value))
    return json.dumps(kept)


def refused_by_database(reason_text: str) -> Refusal:
    """The refusal of an event whose values PostgreSQL did not take."""
    reason: Reason = "database_refused"
    return Refusal(reason, reason_text)
