"""The gateway's sequence of one merchant: which numbers were seen, as a first and a highest one and the gaps between.

A number that is seen is taken out of the gap that holds it, or opens a gap behind the highest one; nothing else is
touched, so that the cost follows the numbers that are new and not those that were ever seen.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Head:
    """The first number that was ever seen, and the highest one; lower ones than the first do not count."""

    first_seen: int
    highest_seen: int


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Numbers from `first` to `last`, both included."""

    first: int
    last: int

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Merged:
    """What some seen numbers change.

    Args:
        head: the head after them.
        cut: gaps that held some of them, each with what is left of it, in order; often nothing.
        opened: new gaps.
    """

    head: Head
    cut: Sequence[tuple[Span, Sequence[Span]]]
    opened: Sequence[Span]


def merge(head: Head, seen: Sequence[int], touched: Sequence[Span]) -> Merged:
    """Takes seen numbers into what is known.

    Args:
        head: the head before.
        seen: distinct numbers in rising order; those below the first one are ignored.
        touched: the gaps that hold at least one of them, or more gaps; apart from each other.
    """
    seen = seen[bisect_left(seen, head.first_seen) :]
    cut = []
    for gap in touched:
        inside = seen[bisect_left(seen, gap.first) : bisect_right(seen, gap.last)]
        if inside:
            cut.append((gap, without(gap, inside)))
    opened, edge = [], head.highest_seen
    for number in seen[bisect_right(seen, edge) :]:
        if number > edge + 1:
            opened.append(Span(edge + 1, number - 1))
        edge = number
    return Merged(Head(head.first_seen, edge), cut, opened)


def without(gap: Span, numbers: Sequence[int]) -> list[Span]:
    """What is left of a gap without some of its numbers, which are distinct and in rising order."""
    left, start = [], gap.first
    for number in numbers:
        if number > start:
            left.append(Span(start, number - 1))
        start = number + 1
    if start <= gap.last:
        left.append(Span(start, gap.last))
    return left
