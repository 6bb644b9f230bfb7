"""What compare finds: a difference with both values and the events that led there."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tallyhook.operations.reconcile.difference import LedThere

What = Literal["missing here", "missing there", "behind", "ahead", "differs", "unreadable"]
EVENTS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is not the same here and in the old handler's tables.

    Args:
        kind: its plural.
        member: the column; None where the whole row is missing.
        here, there: both values; None where there is none.
        events: what made the row here, oldest first: `import:...`, then events; of a balance, its newest entries.
    """

    kind: str
    id: str
    what: What
    member: str | None = None
    here: Any = None
    there: Any = None
    events: Sequence[LedThere] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Compared:
    """So many rows of a kind were compared by now; for the progress bar."""

    kind: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Summary:
    """How it ended.

    Args:
        fresh: rows passed over because they changed too lately.
        moving: rows that were different at each look, each time otherwise: events are on their way.
        whole: False where it stopped after the most differences that were asked for.
        without: kinds that the old handler does not keep.
    """

    fresh: int
    moving: int
    whole: bool
    without: Sequence[str]


Finding = Difference | Compared | Summary
