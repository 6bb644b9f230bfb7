"""A world put to the test, and a bound on how many worlds the search for a smaller counterexample may cost."""

from sinks.batch import PARKED_ROWS_MAX
from tests.conformance.conftest import Twins
from tests.conformance.tables import differences
from tests.conformance.worlds import World

SHRINKS_MAX = 200
"""How many worlds are lived after the first that fails; what shrinking asks beyond that counts as no failure."""


def agree(twins: Twins, world: World, parked_rows_max: int = PARKED_ROWS_MAX) -> None:
    """Raises AssertionError with the rows that only one of the two has."""
    complaint = disagreement(twins, world, parked_rows_max)
    assert complaint is None, complaint


def disagreement(twins: Twins, world: World, parked_rows_max: int) -> str | None:
    """How the two end differently, and the world for a person; None when they agree."""
    expected = twins.handler.live(world)
    found = differences(expected, twins.sink.live(world, parked_rows_max))
    return "\n".join([*found, "", *_told(world)]) if found else None


class SmallEnough(BaseException):
    """A counterexample that nobody needs smaller. Hypothesis would take an Exception for one more failure."""


class Trial:
    """Lives worlds for Hypothesis, each once; `failing` is the last one that failed, the smallest in the end.

    Shrinking would go on for minutes: a run that is cut off by its time limit tells no counterexample at all.

    Args:
        arrivals_enough: a failing world with so few arrivals raises SmallEnough and ends the search.
    """

    def __init__(self, twins: Twins, arrivals_enough: int = 0) -> None:
        self.failing: World | None = None
        self._twins, self._arrivals_enough = twins, arrivals_enough
        self._known: dict[tuple[World, int], str | None] = {}
        self._shrinks = 0

    def live(self, world: World, parked_rows_max: int) -> None:
        """Raises AssertionError when the two end differently."""
        known = world, parked_rows_max
        if known not in self._known:
            self._known[known] = self._lived(world, parked_rows_max)
        complaint = self._known[known]
        if complaint is not None:
            self.failing = world
            if sum(len(batch.arrivals) for batch in world) <= self._arrivals_enough:
                raise SmallEnough(complaint)
            raise AssertionError(complaint)

    def _lived(self, world: World, parked_rows_max: int) -> str | None:
        if self.failing is not None:
            self._shrinks += 1
        return disagreement(self._twins, world, parked_rows_max) if self._shrinks <= SHRINKS_MAX else None


def _told(world: World) -> list[str]:
    """What was written and what arrived, batch by batch."""
    lines = []
    for number, batch in enumerate(world):
        lines += [f"{row}" for row in batch.correlations]
        lines.append(f"batch {number}{', parked ones first' if batch.looks_first else ''}")
        for arrival in batch.arrivals:
            fault = f" ({arrival.event.fault})" if arrival.event.fault else ""
            lines.append(f"  at {arrival.source_offset}{fault}: {arrival.event.body.decode(errors='replace')}")
    return lines
