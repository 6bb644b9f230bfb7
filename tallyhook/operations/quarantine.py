"""What was set aside: found, shown, and closed by hand. The bytes are never touched."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast

import psycopg
from psycopg.rows import class_row

from schemas.reasons import REASONS, Explanation, Reason
from tallyhook.errors import TallyhookError, UsageError
from tallyhook.postgres import Connection, Queries

State = Literal["open", "redriven", "discarded"]
Closing = Literal["discard", "accept"]

NEWEST = (1 << 63) - 1
RESOLVED_ROWS_MAX = 100_000
"""So many rows are locked at a time at most, while the sink may wait for one of them."""
RESOLVE_TRIES = 5
NOTE_CHARS_MAX = 1000
ACTOR_CHARS_MAX = 200

NAMED_MAX = 20
"""So many ids stand in a message."""

_CLOSED_AS: dict[Closing, str] = {"discard": "discarded", "accept": "accepted, handled by hand"}
_NOT_KNOWN = Explanation("This version does not know the reason.", "เวอร์ชันนี้ไม่รู้จักเหตุผลนี้", "Read the detail.")


class UnknownRows(TallyhookError):
    """Rows that were named do not exist; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows; every condition that is set must hold.

    Args:
        event_type: `type` of the event, where the record told it.
        states: None for any.
        since, until: when it was set aside, from the first up to and without the second.
        after: only rows with a higher id.
        upto: only rows with this id or a lower one.
    """

    ids: tuple[int, ...] = ()
    event_ids: tuple[str, ...] = ()
    reason: str | None = None
    stage: str | None = None
    event_type: str | None = None
    states: tuple[State, ...] | None = ("open",)
    since: datetime | None = None
    until: datetime | None = None
    after: int = 0
    upto: int = NEWEST

    def parameters(self) -> dict[str, Any]:
        """As the statements take them."""
        return {
            "ids": list(self.ids) or None,
            "event_ids": list(self.event_ids) or None,
            "reason": self.reason,
            "stage": self.stage,
            "event_type": self.event_type,
            "states": None if self.states is None else list(self.states),
            "since": self.since,
            "until": self.until,
            "after": self.after,
            "upto": self.upto,
        }


@dataclass(frozen=True, slots=True)
class QuarantinedEvent:
    """One row without its bytes.

    Args:
        stage: who set it aside: ingress, streams or sinks.
        at: when it was set aside.
        attempts: how often it was tried.
        actor, note: who closed it and why.
        body_bytes: how long the bytes are.
    """

    id: int
    stage: str
    reason: str
    detail: str
    event_id: str | None
    event_type: str | None
    object_id: str | None
    source_topic: str
    source_partition: int
    source_offset: int
    attempts: int
    at: datetime
    state: State
    actor: str | None
    note: str | None
    body_bytes: int

    @property
    def source(self) -> str:
        """Where the delivery lies, `topic[partition]@offset`."""
        return f"{self.source_topic}[{self.source_partition}]@{self.source_offset}"

    @property
    def explanation(self) -> Explanation:
        """The reason in words, and the next step."""
        return REASONS.get(cast("Reason", self.reason), _NOT_KNOWN)


@dataclass(frozen=True, slots=True)
class Stored:
    """A row with its bytes and headers, exactly as they were kept."""

    event: QuarantinedEvent
    raw: bytes
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Closed:
    """What became of one row that was to be closed.

    Args:
        changed: false when it was closed before; then state, actor and note are those of before.
    """

    id: int
    changed: bool
    state: State
    actor: str | None
    note: str | None


class Quarantine:
    """The table `quarantined_events` of one installation."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._queries = Queries("tallyhook.operations", "quarantine.sql", schema)

    def measure(self, wanted: Wanted) -> tuple[int, int]:
        """How many rows fit, and the highest id among them (0 when there is none)."""
        row = self._connection.execute(self._queries["measure"], wanted.parameters()).fetchone()
        return (0, 0) if row is None else (row[0], row[1])

    def find(self, wanted: Wanted, limit: int) -> list[QuarantinedEvent]:
        """The first rows that fit, oldest first."""
        with self._connection.cursor(row_factory=class_row(QuarantinedEvent)) as cursor:
            return cursor.execute(self._queries["find"], wanted.parameters() | {"limit": limit}).fetchall()

    def named(self, ids: Sequence[int]) -> list[QuarantinedEvent]:
        """These rows, whatever their state; raises UnknownRows."""
        found = self.find(Wanted(ids=tuple(ids), states=None), len(ids)) if ids else []
        _demand(ids, {row.id for row in found})
        return found

    def load(self, events: Sequence[QuarantinedEvent]) -> list[Stored]:
        """The same rows with their bytes, in the same order; whoever calls bounds how many bytes that is."""
        rows = self._connection.execute(self._queries["load"], ([event.id for event in events],)).fetchall()
        found = {key: (bytes(raw), headers) for key, raw, headers in rows}
        return [Stored(event, *found[event.id]) for event in events if event.id in found]

    def get(self, row_id: int) -> Stored | None:
        """One row with its bytes, whatever its state."""
        found = self.find(Wanted(ids=(row_id,), states=None), 1)
        return next(iter(self.load(found)), None)

    def resolve(self, ids: Sequence[int], how: Closing, reason: str, actor: str) -> list[Closed]:
        """Closes rows by hand, all of them or none; rows that are closed already stay as they are.

        Args:
            how: discard it, or accept that somebody has done by hand what it asked for.
            reason: why, for those who read it later.
            actor: who says so.

        Raises:
            UnknownRows: names those that do not exist.
            UsageError: reason or actor is empty or too long, or the ids are too many.
        """
        note = f"{_CLOSED_AS[how]}: {_bounded('--reason', reason, NOTE_CHARS_MAX)}"
        actor = _bounded("--actor", actor, ACTOR_CHARS_MAX)
        wanted = sorted(set(ids))
        if len(wanted) > RESOLVED_ROWS_MAX:
            raise UsageError(
                f"{len(wanted)} rows: at most {RESOLVED_ROWS_MAX} are closed at a time; give a part of them"
            )
        for _ in range(RESOLVE_TRIES - 1):
            # The sink locks rows in the order of its events, so the two may come to wait for each other.
            with suppress(psycopg.errors.DeadlockDetected):
                return self._resolve(wanted, actor, note)
        return self._resolve(wanted, actor, note)

    def _resolve(self, wanted: Sequence[int], actor: str, note: str) -> list[Closed]:
        with self._connection.transaction():
            before = {row[0]: Closed(row[0], False, *row[1:]) for row in self._run("lock", (list(wanted),))}
            _demand(wanted, before.keys())
            changed = {row[0] for row in self._run("close", {"ids": list(wanted), "actor": actor, "note": note})}
            after = {row[0]: Closed(row[0], True, *row[1:]) for row in self._run("lock", (sorted(changed),))}
        return [after.get(row_id, before[row_id]) for row_id in wanted]

    def _run(self, name: str, parameters: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(self._queries[name], parameters).fetchall()


def _demand(ids: Iterable[int], found: Collection[int]) -> None:
    missing = sorted(set(ids) - set(found))
    if missing:
        more = f" and {len(missing) - NAMED_MAX} more" if len(missing) > NAMED_MAX else ""
        raise UnknownRows(
            f"no quarantined event has id {', '.join(map(str, missing[:NAMED_MAX]))}{more}: nothing was done;"
            " see `tallyhook quarantine list --state any`"
        )


def _bounded(option: str, text: str, chars_max: int) -> str:
    text = text.strip()
    if not text or len(text) > chars_max or "\0" in text:
        raise UsageError(f"{option}: must be a text of 1 to {chars_max} characters")
    return text
