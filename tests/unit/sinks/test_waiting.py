"""How many waiting events one transaction takes."""

from sinks.waiting import choose


def test_withdrawals_are_chosen_in_order_while_the_bound_lasts() -> None:
    """What one takes is not there for the next; one that needs more than is left ends the batch, a smaller one fits."""
    counts = {"a": 4, "b": 7, "c": 6, "other": 3}
    assert choose(["a", "none", "b", "c"], counts, 10) == (["a", "c"], {"b"})
    assert choose(["b", "a", "c"], counts, 10) == (["b"], {"a", "c"})


def test_nothing_may_wait() -> None:
    """With no room every withdrawal for which something waits ends the batch, and the others do not."""
    assert choose(["a", "none"], {"a": 1}, 0) == ([], {"a"})
