"""A set of numbers at one bit each."""

from hypothesis import given
from hypothesis import strategies as st

from tallyhook.operations.audit.offset_bits import PAGE_NUMBERS, OffsetBits

NUMBERS = st.one_of(
    st.integers(0, 40),
    st.integers(PAGE_NUMBERS - 20, PAGE_NUMBERS + 20),
    st.integers(1 << 40, (1 << 40) + 20),
)


@given(st.lists(NUMBERS, max_size=60))
def test_it_is_a_set(numbers: list[int]) -> None:
    """Adding tells whether it was new; what was not added is not there."""
    bits, model = OffsetBits(), set[int]()
    for number in numbers:
        assert bits.add(number) is (number not in model)
        model.add(number)
    assert all(number in bits for number in model)
    assert not any(number in bits for number in range(100) if number not in model)


@given(st.sets(st.integers(0, 60)), st.integers(0, 30), st.integers(0, 70))
def test_missing_numbers_are_found_in_order(numbers: set[int], start: int, end: int) -> None:
    """Exactly those of the range that were not added, also over a page's edge."""
    edge = PAGE_NUMBERS - 30
    bits = OffsetBits()
    for number in numbers:
        bits.add(edge + number)
    wanted = [edge + number for number in range(start, end) if number not in numbers]
    assert list(bits.missing(edge + start, edge + end)) == wanted


def test_a_long_full_range_is_passed_quickly() -> None:
    """Eight numbers a step: the one that is missing at the end is found."""
    bits = OffsetBits()
    for number in range(200_000):
        bits.add(number)
    assert list(bits.missing(0, 200_001)) == [200_000]
