"""A world put to the test, and a bound on how many worlds the search for a smaller counterexample may cost."""

from tests.conformance.conftest import Twins
from tests.conformance.tables import differences
from tests.conformance.worlds import World

SHRINKS_MAX = 200
"""How many worlds are lived after the first that fails; what shrinking asks beyond that counts as no failure."""


def agree(twins: Twins, world: World) -> None:
    """Raises AssertionError with the rows that only one of the two has."""
    complaint = disagreement(twins, world)
    assert complaint is None, complaint


def disagreement(twins: Twins, world: World) -> str | None:
    """How the two end differently, and the world for a person; None when they agree."""
    expected = twins.handler.live(world)
    found = differences(expected, twins.sink.live(world))
    return "\n".join([*found, "", *_told(world)]) if found else None


class Trial:
    """Lives worlds for Hypothesis, each once; `failing` is the last one that failed, the smallest in the end.

    Shrinking would go on for minutes: a run that is cut off by its time limit tells no counterexample at all.
    """

    def __init__(self, twins: Twins) -> None:
        self.failing: World | None = None
        self._twins = twins
        self._known: dict[World, str | None] = {}
        self._shrinks = 0

    def live(self, world: World) -> None:
        """Raises AssertionError when the two end differently."""
        if world not in self._known:
            self._known[world] = self._lived(world)
        complaint = self._known[world]
        if complaint is not None:
            self.failing = world
            raise AssertionError(complaint)

    def _lived(self, world: World) -> str | None:
        if self.failing is not None:
            self._shrinks += 1
        return disagreement(self._twins, world) if self._shrinks <= SHRINKS_MAX else None


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
