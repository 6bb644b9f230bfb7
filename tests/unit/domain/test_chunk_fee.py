"""The running fee: what rounding loses falls to the last chunk, so the chunks add up to the order's fee."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.domain.chunk_fee import chunk_fee_minor, running_fee_minor


def test_the_gateways_example() -> None:
    """2,675 over 300 + 400 + 300 baht is 802, 1,070 and 803; each chunk on its own would leave one satang over."""
    chunks, total = (30_000, 40_000, 30_000), 100_000
    fees = [
        chunk_fee_minor(2_675, total, after, chunk) for after, chunk in zip(accumulate(chunks), chunks, strict=True)
    ]
    assert fees == [802, 1_070, 803]
    assert [running_fee_minor(2_675, after, total) for after in accumulate(chunks)] == [802, 1_872, 2_675]
    assert sum(2_675 * chunk // total for chunk in chunks) == 2_674


@given(st.integers(0, 10**12), st.lists(st.integers(1, 10**12), min_size=1, max_size=6))
def test_the_chunks_of_a_complete_order_cost_its_fee(fee_total: int, chunks: list[int]) -> None:
    """Whatever the chunks; each is within one satang of its exact share."""
    total = sum(chunks)
    fees = [
        chunk_fee_minor(fee_total, total, after, chunk) for after, chunk in zip(accumulate(chunks), chunks, strict=True)
    ]
    assert sum(fees) == fee_total
    assert all(abs(fee * total - fee_total * chunk) < total for fee, chunk in zip(fees, chunks, strict=True))


@pytest.mark.parametrize(("filled_minor", "fee_minor"), [(0, 0), (1, 0), (37, 0), (38, 1), (100_000, 2_675)])
def test_the_running_fee_is_rounded_down(filled_minor: int, fee_minor: int) -> None:
    """Exactly, with whole numbers: 38 of 100,000 satang are the first that cost a satang."""
    assert running_fee_minor(2_675, filled_minor, 100_000) == fee_minor


def test_great_amounts_lose_nothing() -> None:
    """Products far beyond a double's digits are exact."""
    total = (1 << 63) - 1
    assert running_fee_minor(total, total - 1, total) == total - 1
