"""The balances that entries announce, after some of them were sent with those of a lost history. Pure.

Each entry says what the user's balance is after it. An entry that was sent has said so for good; what was not sent yet
has to fit in, so that the steps lead from what was kept to the balance of today without a break.
"""

from collections import Counter
from collections.abc import Sequence

TRIES_MAX = 20_000
"""Bound of the search; a user has a handful of entries in the seconds that a failover loses."""


def fit(balance_minor: int, sent: Sequence[tuple[int, int]], unsent_minor: Sequence[int]) -> list[int] | None:
    """What each unsent entry has to announce; None where no order of the steps joins them all.

    Args:
        balance_minor: the user's balance after everything.
        sent: amount and announced balance of each entry that was sent and was made again.
        unsent_minor: amounts of the entries that were not sent.
    """
    start = balance_minor - sum(amount for amount, _ in sent) - sum(unsent_minor)
    steps = Counter((after - amount, after) for amount, after in sent)
    tries = TRIES_MAX
    # Each state: the balance so far, how many sent steps were gone, and the unsent entries in the order they were gone.
    path: list[tuple[int, int]] = []

    def walk(now: int, left: int) -> bool:
        nonlocal tries
        tries -= 1
        if tries < 0:
            return False
        if left == 0 and len(path) == len(unsent_minor):
            return True
        for step in [step for step, count in steps.items() if count and step[0] == now]:
            steps[step] -= 1
            if walk(step[1], left - 1):
                return True
            steps[step] += 1
        gone = {place for place, _ in path}
        tried: set[int] = set()
        for place, amount in enumerate(unsent_minor):
            if place in gone or amount in tried:
                continue
            tried.add(amount)
            path.append((place, now + amount))
            if walk(now + amount, left):
                return True
            path.pop()
        return False

    if len(sent) + len(unsent_minor) > 400 or not walk(start, len(sent)):
        return None
    return [after for _, after in sorted(path)]
