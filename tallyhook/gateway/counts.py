"""What became of every event and every attempt: nothing is lost without a number."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal

Purpose = Literal["first", "duplicate", "resend"]
"""Why a delivery is made: for the first time, again though it was answered, or because somebody asked."""

NO_ANSWER: Final = 0
"""The status of an attempt that got no answer: refused, cut off, or too slow."""


@dataclass(slots=True)
class Counts:
    """Counted while the simulator works.

    Args:
        deliverable: events that are to be delivered.
        withheld: events that are never delivered on their own; the API lists them.
        statuses: attempts by HTTP status, 0 for no answer.
        purposes: attempts by why they were made.
        accepted_attempts: attempts answered 2xx, test events left out.
        accepted: ids of events answered 2xx at least once.
        gave_up: ids of events of which a delivery has used all its attempts.
        by_key: attempts by the id of the key that signed them.
        extra: ids of events that were not to be delivered, and that somebody had resent.
    """

    deliverable: int
    withheld: int
    statuses: Counter[int] = field(default_factory=Counter)
    purposes: Counter[Purpose] = field(default_factory=Counter)
    by_key: Counter[str] = field(default_factory=Counter)
    accepted_attempts: int = 0
    accepted: set[str] = field(default_factory=set)
    gave_up: set[str] = field(default_factory=set)
    extra: set[str] = field(default_factory=set)

    @property
    def attempts(self) -> int:
        """All attempts."""
        return self.statuses.total()

    @property
    def delivered(self) -> int:
        """Deliverable events that were answered 2xx at least once."""
        return len(self.accepted - self.extra)

    @property
    def lost(self) -> list[str]:
        """Ids of the events that used their attempts and were never accepted, sorted."""
        return sorted(self.gave_up - self.accepted - self.extra)

    @property
    def pending(self) -> int:
        """Deliverable events that were neither accepted nor given up."""
        return self.deliverable - self.delivered - len(self.lost)

    def as_json(self) -> dict[str, object]:
        """For the command's `--json` and the simulator's state page."""
        return {
            "deliverable": self.deliverable,
            "delivered": self.delivered,
            "pending": self.pending,
            "gave_up": len(self.lost),
            "withheld": self.withheld,
            "attempts": self.attempts,
            "accepted_attempts": self.accepted_attempts,
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "purposes": dict(sorted(self.purposes.items())),
            "keys": dict(sorted(self.by_key.items())),
        }
