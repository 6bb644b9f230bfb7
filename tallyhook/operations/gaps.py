"""Numbers of the gateway's sequence that are missing: shown with their age, and closed by hand.

A gap is normal while the gateway may still deliver what is missing, late after that, and lost when even its last
attempt is long over. Only `tallyhook backfill` can tell whether there ever was something to be delivered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sinks.domain.sequences import Span
from tallyhook.errors import TallyhookError, UsageError
from tallyhook.postgres import Connection, Queries
from tallyhook.settings import GapsSettings, Settings

Standing = Literal["normal", "late", "lost", "ignored", "unlisted"]
Closing = Literal["ignored", "unlisted"]

SEQUENCE_MAX = (1 << 63) - 1
REASON_CHARS_MAX = 1000
ACTOR_CHARS_MAX = 200
HEADS_MAX = 1000


class NothingOpen(TallyhookError):
    """No number of a range is missing, or somebody closed it before; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Gap:
    """One range of missing numbers.

    Args:
        age_hours: since a higher number was received.
        standing: normal, late or lost by its age; or how it was closed.
        closed_at, actor, reason: by whom and why, for one that was closed.
    """

    merchant: str
    first: int
    last: int
    opened_at: datetime
    age_hours: float
    standing: Standing
    closed_at: datetime | None
    actor: str | None
    reason: str | None

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Counted:
    """Ranges, and the numbers in them."""

    ranges: int
    numbers: int


@dataclass(frozen=True, slots=True)
class Gaps:
    """What is missing.

    Args:
        gaps: the oldest ranges.
        ranges: how many ranges fit, shown or not.
        open, late, lost: late ones are older than normal, lost ones are among the late ones.
        heads: the first and the highest number by merchant.
        kept: a sink keeps the numbers just now.
    """

    gaps: Sequence[Gap]
    ranges: int
    open: Counted
    late: Counted
    lost: Counted
    heads: dict[str, Span]
    kept: bool


class GapTable:
    """The gaps of one installation.

    Args:
        connection: autocommit.
    """

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._queries = Queries("tallyhook.operations", "gaps.sql", schema)

    def find(
        self, settings: GapsSettings, now: datetime, *, merchant: str | None, closed: bool = False, limit: int = 100
    ) -> Gaps:
        """The oldest ranges.

        Args:
            now: the present moment, aware.
            closed: also those that are ignored or unlisted.
            limit: most ranges to be shown.
        """
        wanted: dict[str, Any] = {"merchant": merchant, "all": closed, "limit": limit}
        lost_before = now - timedelta(hours=settings.lost_after_hours)
        late_before = max(lost_before, now - timedelta(hours=settings.normal_hours))
        measured = self._one("measure", wanted | {"late_before": late_before, "lost_before": lost_before})
        counted = [Counted(measured[at], int(measured[at + 1])) for at in (0, 2, 4)]
        rows = self._all("find", wanted)
        return Gaps(
            [_gap(row, settings, now) for row in rows],
            self._one("count", wanted)[0],
            open=counted[0],
            late=counted[1],
            lost=counted[2],
            heads=self.heads(merchant),
            kept=bool(self._one("is_kept", None)[0]),
        )

    def heads(self, merchant: str | None = None) -> dict[str, Span]:
        """The first and the highest number seen by merchant, at most 1,000 merchants."""
        rows = self._all("heads", {"merchant": merchant, "limit": HEADS_MAX})
        return {row[0]: Span(row[1], row[2]) for row in rows}

    def next_open(self, merchant: str, after: int, ceiling: int) -> Span | None:
        """The first open range with a number behind `after`, beginning at or before the ceiling."""
        rows = self._all("next_open", {"merchant": merchant, "after": after, "ceiling": ceiling})
        return Span(max(rows[0][0], after + 1), rows[0][1]) if rows else None

    def open_among(self, merchant: str, numbers: Sequence[int]) -> set[int]:
        """Those of some numbers that are missing and open."""
        return {row[0] for row in self._all("open_among", {"merchant": merchant, "numbers": list(numbers)})}

    def count_open(self, merchant: str, after: int, ceiling: int) -> int:
        """How many open numbers lie behind one, up to the ceiling."""
        return int(self._one("count_open", {"merchant": merchant, "after": after, "ceiling": ceiling})[0])

    def open_within(self, merchant: str, span: Span, limit: int) -> list[Span]:
        """The open numbers within a range."""
        wanted = {"merchant": merchant, "first": span.first, "last": span.last, "limit": limit}
        return [Span(*row) for row in self._all("open_within", wanted)]

    def close(self, merchant: str, spans: Sequence[Span], state: Closing, *, reason: str, actor: str) -> list[Span]:
        """Closes what is open within the ranges, all in one transaction; gives what was closed.

        The rest of a range that reaches beyond stays open, and as old as it was.
        """
        closed: list[Span] = []
        with self._connection.transaction():
            self._connection.execute(self._queries["lock_keeper"])
            for span in spans:
                # The highest number of all can have been seen and be no gap: one above it could not be written.
                last = min(span.last, SEQUENCE_MAX - 1)
                wanted = {"merchant": merchant, "first": span.first, "last": last, "state": state}
                closed += [Span(*row) for row in self._all("relabel", wanted | {"reason": reason, "actor": actor})]
        return closed

    def ignore(self, merchant: str, span: Span, *, reason: str, actor: str) -> Counted:
        """Closes what is open within a range, for good.

        Raises:
            NothingOpen: there is nothing open in it.
            UsageError: reason or actor is empty or too long.
        """
        reason, actor = _text("--reason", reason, REASON_CHARS_MAX), _text("--actor", actor, ACTOR_CHARS_MAX)
        closed = self.close(merchant, [span], "ignored", reason=reason, actor=actor)
        if not closed:
            raise NothingOpen(
                f"no number of {span.first} to {span.last} is open for merchant {merchant}: nothing was changed;"
                " see `tallyhook gaps --all`"
            )
        return Counted(len(closed), sum(part.count for part in closed))

    def _all(self, name: str, parameters: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(self._queries[name], parameters).fetchall()

    def _one(self, name: str, parameters: Any) -> tuple[Any, ...]:
        return self._connection.execute(self._queries[name], parameters).fetchone() or (0,) * 6


def merchant_of(table: GapTable, settings: Settings, named: str | None, *, may_be_new: bool = False) -> str:
    """The merchant that a command is about: the named one, the door's, or the only one that is known.

    Args:
        may_be_new: whether the named one may be one of whom nothing was seen yet.

    Raises:
        UsageError: it cannot be told, or others are known and this one is not.
    """
    known = sorted(table.heads())
    if named is not None:
        demand_known(known, settings, named, may_be_new=may_be_new)
        return named
    if settings.ingress.merchant_id is not None:
        return settings.ingress.merchant_id
    if len(known) == 1:
        return known[0]
    raise UsageError(
        f"which merchant? Give --merchant; known are {', '.join(known[:10])}"
        if known
        else "no event was seen yet, so that no merchant is known: give --merchant"
    )


def demand_known(known: Sequence[str], settings: Settings, named: str, *, may_be_new: bool = False) -> None:
    """Raises UsageError for a merchant whom nobody knows though others are known: a slip must not look like peace."""
    if known and not may_be_new and named not in (*known, settings.ingress.merchant_id):
        raise UsageError(f"--merchant {named!a} is not known here; known are {', '.join(known[:10])}")


def _gap(row: Sequence[Any], settings: GapsSettings, now: datetime) -> Gap:
    merchant, first, last, opened_at, state, closed_at, actor, reason = row
    age_hours = max(0.0, (now - opened_at) / timedelta(hours=1))
    standing: Standing
    if state in ("ignored", "unlisted"):
        standing = state
    elif age_hours >= settings.lost_after_hours:
        standing = "lost"
    else:
        standing = "late" if age_hours >= settings.normal_hours else "normal"
    return Gap(merchant, first, last, opened_at, age_hours, standing, closed_at, actor, reason)


def _text(option: str, text: str, chars_max: int) -> str:
    text = text.strip()
    if not text or len(text) > chars_max or "\0" in text:
        raise UsageError(f"{option}: must be a text of 1 to {chars_max} characters")
    return text
