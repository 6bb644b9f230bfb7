"""The fee of one chunk of a withdrawal, as the gateway computes it; for cross-checks only, what was sent is kept.

Source: the gateway's page on partial fills, "Why the chunks carry different fees".
"""


def running_fee_minor(fee_total_minor: int, filled_minor: int, amount_total_minor: int) -> int:
    """The part of the order's fee that is due once `filled_minor` of it was paid out, rounded down (all satang).

    Args:
        amount_total_minor: above zero.
    """
    return fee_total_minor * filled_minor // amount_total_minor


def chunk_fee_minor(
    fee_total_minor: int, amount_total_minor: int, filled_after_minor: int, chunk_amount_minor: int
) -> int:
    """What one chunk adds to the running fee (all satang).

    What rounding loses stays in the running total, so the chunks of a complete order add up to its fee exactly: chunks
    of 300, 400 and 300 baht of an order with a fee of 26.75 cost 8.02, 10.70 and 8.03.

    Args:
        filled_after_minor: the order's total with this chunk.
        amount_total_minor: above zero.
    """
    before = running_fee_minor(fee_total_minor, filled_after_minor - chunk_amount_minor, amount_total_minor)
    return running_fee_minor(fee_total_minor, filled_after_minor, amount_total_minor) - before
