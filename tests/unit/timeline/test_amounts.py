"""Amounts as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallyhook.operations.timeline.amounts import exact, short


@pytest.mark.parametrize(
    ("minor", "in_lines", "in_status"),
    [
        (0, "0.00", "0"),
        (5, "0.05", "0.05"),
        (100, "1.00", "1"),
        (30_050, "300.50", "300.50"),
        (100_000, "1,000.00", "1,000"),
        (1_234_567_890, "12,345,678.90", "12,345,678.90"),
        (-30_000, "-300.00", "-300"),
        (-5, "-0.05", "-0.05"),
    ],
)
def test_baht(minor: int, in_lines: str, in_status: str) -> None:
    """Lines keep two decimals, status texts drop `.00`; thousands are separated."""
    assert (exact(minor), short(minor)) == (in_lines, in_status)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_no_satang_is_lost(minor: int) -> None:
    """What is shown is the amount, also where a float could not hold it."""
    shown = exact(minor)
    assert int(shown.replace(",", "").replace(".", "")) == minor
    assert shown[-3] == "."
