"""What reconcile finds: a difference with both values and the events that led there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from tallyhook.postgres import Connection, Queries

Kind = Literal["event", "deposit", "withdrawal", "balance_transaction", "bucket"]
What = Literal["missing here", "missing there", "behind", "ahead", "differs", "unreadable"]

EVENTS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class LedThere:
    """One event of the object, and what became of it here.

    Args:
        verdict: the sink's, `parked` or `quarantined`.
    """

    event_id: str | None
    version: int | None
    verdict: str
    reason: str | None
    sequence: int | None


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is not the same on both sides.

    Args:
        id: of the object, or the name of a bucket.
        member: which value; None where a whole object is missing.
        here, there: both values; None where there is none.
        detail: what else is to be known, in words.
        events: the newest events of the object, oldest first; nothing where the inbox was pruned.
    """

    kind: Kind
    id: str
    what: What
    member: str | None = None
    here: Any = None
    there: Any = None
    detail: str = ""
    events: Sequence[LedThere] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Compared:
    """So many objects of a kind were compared by now; for the progress bar.

    Args:
        total: how many there are here.
    """

    kind: Kind
    done: int
    total: int


Finding = Difference | Compared


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every check is given.

    Args:
        connection: autocommit, used by one thread.
        merchant: whose account the API's key is of.
        now: the present moment, aware.
        wait: waits until what was under way a moment ago has come, so that it is no difference; raises Stopped.
    """

    connection: Connection
    queries: Queries
    merchant: str
    now: Callable[[], datetime]
    wait: Callable[[], None]

    def rows(self, name: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        return self.connection.execute(self.queries[name], parameters).fetchall()

    def count(self, name: str, parameters: Any = None) -> int:
        """The only value of a statement."""
        return int(self.rows(name, parameters)[0][0])

    def events(self, object_id: str) -> tuple[LedThere, ...]:
        """The newest events of an object, oldest first; those that were set aside at the end."""
        wanted = {"object_id": object_id, "limit": EVENTS_SHOWN}
        applied, aside = self.rows("applied", wanted), self.rows("set_aside", wanted)
        return tuple(
            LedThere(event_id, _number(version), verdict, reason, _number(sequence))
            for event_id, version, verdict, reason, sequence in (*reversed(applied), *reversed(aside))
        )

    def difference(
        self,
        kind: Kind,
        object_id: str,
        what: What,
        member: str | None = None,
        here: Any = None,
        there: Any = None,
        detail: str = "",
    ) -> Difference:
        """A difference with the events that led there."""
        return Difference(kind, object_id, what, member, here, there, detail, self.events(object_id))


def _number(value: object) -> int | None:
    """A number as a column or as a header has it."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 19 else None
