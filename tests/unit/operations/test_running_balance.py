"""The wallet's running sums: the first movement that is off is named, and order within one instant does not matter."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tallyhook.operations.reconcile.balance import Movement, balance_after, first_off

BEGAN = datetime(2026, 5, 1, tzinfo=UTC)
BUCKETS = ("pending", "available", "locked", None)


def moved(
    number: int, amount_minor: int, source: str | None, target: str | None, *, second: int | None = None, **after: int
) -> Movement:
    """A movement a second after the one before, with what the gateway said after it."""
    at = BEGAN + timedelta(seconds=number if second is None else second)
    return Movement(f"btxn_{number:03}", at, amount_minor, source, target, after)


def test_sums_that_agree() -> None:
    """A deposit comes to pending, is cleared, half is locked and leaves the wallet."""
    movements = [
        moved(1, 1000, None, "pending", pending=1000, available=0),
        moved(2, 1000, "pending", "available", pending=0, available=1000),
        moved(3, 400, "available", "locked", available=600, locked=400),
        moved(4, 400, "locked", None, locked=0),
    ]
    assert first_off(movements) is None


def test_the_first_movement_that_is_off_is_named() -> None:
    """What is missing shows at the next one; the later ones are off because of it."""
    movements = [
        moved(1, 1000, None, "available", available=1000),
        moved(3, 100, "available", None, available=400),
        moved(4, 100, "available", None, available=300),
    ]
    off = first_off(movements)
    assert off is not None
    assert (off.id, dict(off.buckets)) == ("btxn_003", {"available": (900, 400)})


def test_a_movement_that_tells_nothing_is_only_added() -> None:
    """balance_after may be absent."""
    movements = [moved(1, 5, None, "available"), moved(2, 5, None, "available", available=10)]
    assert first_off(movements) is None
    assert first_off([moved(1, 5, None, "available"), moved(2, 5, None, "available", available=9)]) is not None


def test_movements_of_one_instant_have_no_order() -> None:
    """One of them must tell the sums after all; if none does, they are off."""
    one = moved(1, 10, None, "available", second=1, available=30)
    two = moved(2, 20, None, "available", second=1, available=20)
    assert first_off([one, two]) is None
    wrong = moved(2, 20, None, "available", second=1, available=25)
    assert first_off([moved(1, 10, None, "available", second=1, available=26), wrong]) is not None


@given(
    st.lists(
        st.tuples(st.integers(1, 10**15), st.sampled_from(BUCKETS), st.sampled_from(BUCKETS), st.integers(0, 3)),
        max_size=30,
    ),
    st.integers(0, 29),
)
def test_any_wallet_agrees_with_itself_and_not_without_one_of_its_movements(
    raw: list[tuple[int, str | None, str | None, int]], dropped: int
) -> None:
    """Several movements an instant; the sums are computed here apart."""
    held = {"pending": 0, "available": 0, "locked": 0}
    movements, second = [], 0
    for number, (amount, source, target, step) in enumerate(raw):
        second += step
        if source is not None:
            held[source] -= amount
        if target is not None:
            held[target] += amount
        movements.append(moved(number, amount, source, target, second=second, **held))
    assert first_off(movements) is None
    rest = [movement for number, movement in enumerate(movements) if number != dropped]
    if dropped < len(movements) - 1 and raw[dropped][1] != raw[dropped][2]:
        # Within an instant one of several may tell by chance what the sums without it are; alone it cannot.
        instants = Counter(movement.created_at for movement in rest)
        dropped_at = movements[dropped].created_at
        if any(count == 1 and moment > dropped_at for moment, count in instants.items()):
            assert first_off(rest) is not None


def test_what_a_balance_after_may_look_like() -> None:
    """Other members and other shapes say nothing."""
    assert balance_after('{"available_minor": 5, "object": "balance", "x_minor": true, "y_minor": 1.0}') == {
        "available": 5
    }
    assert balance_after("[1]") == balance_after("null") == balance_after(None) == {}
