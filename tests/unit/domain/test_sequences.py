"""Gaps in a merchant's sequence: merged piece by piece they are what the set of all numbers says."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.domain.sequences import Head, Span, merge, without

NUMBERS = st.integers(0, 40)


class Known:
    """What is known of a merchant, kept in memory as the tables keep it."""

    def __init__(self) -> None:
        self.head: Head | None = None
        self.gaps: set[Span] = set()

    def see(self, numbers: Sequence[int]) -> None:
        """Takes a batch in."""
        head = self.head or Head(numbers[0], numbers[0])
        merged = merge(head, sorted(set(numbers)), sorted(self.gaps))
        for gap, left in merged.cut:
            self.gaps.remove(gap)
            self.gaps.update(left)
        self.gaps.update(merged.opened)
        self.head = merged.head


def from_scratch(first: int, numbers: set[int]) -> set[int]:
    """Every number that is missing between the first and the highest one."""
    return {number for number in range(first, max(numbers) + 1) if number not in numbers}


@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=12), min_size=1, max_size=12))
def test_any_batches_in_any_order_give_what_the_whole_set_gives(batches: list[list[int]]) -> None:
    """With numbers repeated, out of order, and below the first one."""
    known = Known()
    for batch in batches:
        known.see(batch)
    first = batches[0][0]
    every = {number for batch in batches for number in batch}
    assert known.head == Head(first, max(every))
    missing = [number for gap in sorted(known.gaps) for number in range(gap.first, gap.last + 1)]
    assert missing == sorted(from_scratch(first, every))
    assert all(gap.first <= gap.last for gap in known.gaps)


@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=12), min_size=1, max_size=8), st.integers(0, 7))
def test_a_batch_taken_in_twice_changes_nothing(batches: list[list[int]], again: int) -> None:
    """Sources are read again after a crash."""
    once, twice = Known(), Known()
    for number, batch in enumerate(batches):
        once.see(batch)
        twice.see(batch)
        if number >= again:
            twice.see(batches[again])
    assert (once.head, once.gaps) == (twice.head, twice.gaps)


def test_only_the_gaps_that_hold_a_number_are_touched() -> None:
    """The others stay whatever they are."""
    merged = merge(Head(1, 30), [7, 40], [Span(5, 9), Span(20, 25)])
    assert merged.cut == [(Span(5, 9), [Span(5, 6), Span(8, 9)])]
    assert merged.opened == [Span(31, 39)]
    assert merged.head == Head(1, 40)


def test_numbers_below_the_first_one_do_not_count() -> None:
    """They were somebody else's to take."""
    merged = merge(Head(100, 100), [3, 99, 100, 101], [])
    assert (merged.head, list(merged.cut), list(merged.opened)) == (Head(100, 101), [], [])


@pytest.mark.parametrize(
    ("numbers", "left"),
    [
        ([5], [Span(6, 9)]),
        ([9], [Span(5, 8)]),
        ([7], [Span(5, 6), Span(8, 9)]),
        ([5, 6, 7, 8, 9], []),
        ([6, 8], [Span(5, 5), Span(7, 7), Span(9, 9)]),
    ],
)
def test_what_is_left_of_a_gap(numbers: list[int], left: list[Span]) -> None:
    """At either end, in the middle, all of it, in pieces."""
    assert without(Span(5, 9), numbers) == left
    assert sum(span.count for span in left) == 5 - len(numbers)


def test_the_largest_numbers() -> None:
    """A sequence may end at 2^63-1."""
    highest = (1 << 63) - 1
    assert merge(Head(0, 0), [highest], []).opened == [Span(1, highest - 1)]
