"""A page: the lines that an end user reads, in order. No chunk's leg_ref is among them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from tallyhook.operations.timeline.catalogue import Language

Role = Literal[
    "title",
    "status",
    "received",
    "fill",
    "reversal",
    "matched",
    "waiting",
    "returned",
    "credit",
    "debit",
    "overpaid",
    "late_slip",
    "movement",
    "note",
    "zone",
]
"""What a line tells, for programs that lay the page out themselves."""

ON_THE_TREE: frozenset[Role] = frozenset({"fill", "reversal", "matched", "waiting", "credit", "debit", "overpaid"})
"""Lines that hang below the one before, as branches."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Args:
        text: in the page's language.
        at: the moment it tells, if it tells one.
        number: of the chunk, counted from 1 in order of time.
        amount_minor: the amount it tells (satang), below zero where it went back.
    """

    role: Role
    text: str
    at: datetime | None = None
    number: int | None = None
    amount_minor: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """What an end user sees of one object.

    Args:
        kind: data.object.object, or empty where it is not known.
        status: the gateway's status, None where there is none.
        zone: IANA name of the zone that the times are in.
    """

    object_id: str
    kind: str
    status: str | None
    language: Language
    zone: str
    lines: tuple[Line, ...]

    def texts(self) -> Iterator[str]:
        """The lines as they are printed: branches with ├ and the last of them with └."""
        for place, line in enumerate(self.lines):
            if line.role not in ON_THE_TREE:
                yield line.text
                continue
            following = self.lines[place + 1 : place + 2]
            goes_on = bool(following) and following[0].role in ON_THE_TREE
            yield f"{'├' if goes_on else '└'} {line.text}"
