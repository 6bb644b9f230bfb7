"""The cross-check of chunk fees: it computes, compares, and says what it could not check."""

import json
from dataclasses import replace

from tallyhook.operations.timeline.chunk_fees import ChunkFees, FeeDifference, check_fees
from tests.unit.timeline.samples import FILLS, row, withdrawal

SETTLED = row(8, "settled", 100_000, 0)
FILLED_AFTER = (30_000, 70_000, 100_000)


def filled(leg_ref: str, filled_minor: object) -> str:
    """A `withdrawal.filled` event's body."""
    return json.dumps({"data": {"object": {"filled_minor": filled_minor}, "fill": {"leg_ref": leg_ref}}})


EVENTS = {f"evt_{fill.sequence}": filled(fill.leg_ref, after) for fill, after in zip(FILLS, FILLED_AFTER, strict=True)}


def test_the_gateways_own_fees_agree() -> None:
    """8.02, 10.70 and 8.03 of 26.75, whatever order the events came in."""
    assert check_fees(withdrawal(SETTLED, *FILLS), EVENTS) == ChunkFees((), 3, 0)
    backwards = dict(reversed(EVENTS.items()))
    assert check_fees(withdrawal(SETTLED, *reversed(FILLS)), backwards) == ChunkFees((), 3, 0)


def test_a_satang_more_is_named() -> None:
    """With the chunk, its number, its event and both amounts."""
    wrong = replace(FILLS[2], fee_recognized_minor=802)
    found = check_fees(withdrawal(SETTLED, *FILLS[:2], wrong), EVENTS)
    assert found == ChunkFees((FeeDifference("leg_2WC8FJ6P", 3, "evt_3", 802, 803),), 2, 0)


def test_what_cannot_be_checked_is_counted() -> None:
    """Without the event, its total, the chunk's fee, or the order's: nothing is claimed."""
    assert check_fees(withdrawal(SETTLED, *FILLS), {}) == ChunkFees((), 0, 3)
    assert check_fees(withdrawal(SETTLED, FILLS[0]), {"e": filled("leg_4TQ2XM9K", None)}) == ChunkFees((), 0, 1)
    assert check_fees(withdrawal(SETTLED, FILLS[0]), {"e": filled("leg_4TQ2XM9K", "30000")}) == ChunkFees((), 0, 1)
    assert check_fees(withdrawal(SETTLED, FILLS[0]), {"e": "[" * 60_000}) == ChunkFees((), 0, 1)
    no_fee = replace(FILLS[0], fee_recognized_minor=None)
    assert check_fees(withdrawal(SETTLED, no_fee), EVENTS) == ChunkFees((), 0, 1)
    for strange in (replace(SETTLED, fee_total_minor=None), replace(SETTLED, amount_total_minor=0)):
        assert check_fees(withdrawal(strange, FILLS[0]), EVENTS) == ChunkFees((), 0, 1)


def test_the_first_event_of_a_chunk_counts() -> None:
    """It is the one whose chunk was kept."""
    events = {"evt_first": filled("leg_4TQ2XM9K", 30_000), "evt_again": filled("leg_4TQ2XM9K", 100_000)}
    assert check_fees(withdrawal(SETTLED, FILLS[0]), events).agree == 1
