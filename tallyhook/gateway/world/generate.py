"""Whole worlds from a seed: the same seed gives the same bytes, on every machine and at any time."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from tallyhook.errors import UsageError
from tallyhook.gateway.world.assembly import assemble, choose_withheld
from tallyhook.gateway.world.deposits import DEPOSIT_SCENARIOS
from tallyhook.gateway.world.model import World
from tallyhook.gateway.world.names import Names
from tallyhook.gateway.world.recalls import RECALL_SCENARIOS
from tallyhook.gateway.world.story import Stories, Story
from tallyhook.gateway.world.strangers import STRANGER_SCENARIOS, TEST_SCENARIOS
from tallyhook.gateway.world.wallet import WALLET_SCENARIOS, open_wallet
from tallyhook.gateway.world.withdrawals import WITHDRAWAL_SCENARIOS

MERCHANT_ID = "mch_sim"
STARTED_AT = datetime(2026, 8, 21, 3, 2, 11, 402_000, tzinfo=UTC)
OBJECTS_MAX = 100_000
HOURS_MAX = 24.0 * 31
STORIES_PER_USER = 4

OPEN_ENDED = frozenset({"deposit_never_correlated", "withdrawal_still_running"})
"""Lives after which the gateway and a receiver that does all things right still differ: what came late and out of order
told less than the gateway knows. A world without them is one that `reconcile` must find in agreement."""

Life = Callable[[Story], None]

SCENARIOS: Mapping[str, tuple[Life, int]] = {
    **DEPOSIT_SCENARIOS,
    **WITHDRAWAL_SCENARIOS,
    **RECALL_SCENARIOS,
    **WALLET_SCENARIOS,
    **STRANGER_SCENARIOS,
    **TEST_SCENARIOS,
}


class Teller:
    """Tells stories into one world.

    Args:
        rng: the only source of chance.
        stories: how many stories there will be; users and the wallet's opening follow from it.
        unknown_share: how many of the events carry members that nobody knows, 0 to 1.
        plain_names: whether all ids are of one shape that is easy on the eye.
    """

    def __init__(
        self,
        rng: random.Random,
        started_at: datetime,
        stories: int,
        unknown_share: float,
        *,
        plain_names: bool = False,
    ) -> None:
        self.told = Stories()
        self.scenarios: Counter[str] = Counter()
        self._rng, self._unknown_share = rng, unknown_share
        self._names = Names(rng, plain=plain_names)
        self._users: list[str] = []
        opening = self._story("opening", started_at, livemode=True)
        self._users += [opening.names.ours("u_") for _ in range(1 + stories // STORIES_PER_USER)]
        open_wallet(opening, stories)

    def tell(self, name: str, at: datetime) -> None:
        """Lets one life begin at that virtual time, whole milliseconds, UTC."""
        life, _ = SCENARIOS[name]
        life(self._story(name, at, livemode=name not in TEST_SCENARIOS))
        self.scenarios[name] += 1

    def _story(self, name: str, at: datetime, *, livemode: bool) -> Story:
        return Story(
            name,
            self._rng,
            self._names,
            at,
            self.told,
            users=self._users,
            unknown_share=self._unknown_share,
            livemode=livemode,
        )


def generate(
    seed: int,
    objects: int,
    *,
    merchant_id: str = MERCHANT_ID,
    started_at: datetime = STARTED_AT,
    span_hours: float = 24.0,
    withhold: int = 0,
    unknown_share: float = 0.1,
    test_traffic: bool = True,
    open_ends: bool = True,
) -> World:
    """A world of that many lives, every scenario among them once there are as many as scenarios.

    Args:
        objects: 1 to 100,000 lives; one with a replacement has two orders, and movements of the wallet come on top.
        started_at: virtual time, UTC.
        span_hours: the time in which lives begin; they end up to two days later.
        withhold: how many events of live mode are never delivered.
        unknown_share: how many of the events carry members that nobody knows, 0 to 1.
        test_traffic: whether some lives are of test mode.
        open_ends: whether some lives are of those in `OPEN_ENDED`.

    Raises:
        UsageError: an argument is out of its bounds.
    """
    _check(objects, span_hours, withhold, unknown_share)
    rng = random.Random(seed)  # noqa: S311  repeatable on purpose; nothing here is a secret
    start = started_at.replace(microsecond=started_at.microsecond // 1_000 * 1_000)
    teller = Teller(rng, start, objects, unknown_share)
    without = (frozenset() if test_traffic else frozenset(TEST_SCENARIOS)) | (frozenset() if open_ends else OPEN_ENDED)
    span_ms = int(span_hours * 3_600_000)
    for name in _cast(rng, objects, without):
        teller.tell(name, start + timedelta(milliseconds=rng.randint(1_000, 1_000 + span_ms)))
    return assemble(
        teller.told,
        seed=seed,
        merchant_id=merchant_id,
        started_at=start,
        scenarios=dict(teller.scenarios),
        withheld=choose_withheld(teller.told, rng, withhold),
    )


def _cast(rng: random.Random, count: int, without: frozenset[str]) -> list[str]:
    """The names of the lives: each once as far as they go, the others by their weights, in random order."""
    names = [name for name in SCENARIOS if name not in without]
    rng.shuffle(names)
    chosen = names[:count]
    rest = count - len(chosen)
    chosen += rng.choices(names, weights=[SCENARIOS[name][1] for name in names], k=rest)
    rng.shuffle(chosen)
    return chosen


def _check(objects: int, span_hours: float, withhold: int, unknown_share: float) -> None:
    if not 1 <= objects <= OBJECTS_MAX:
        raise UsageError(f"objects is {objects}: must be 1..{OBJECTS_MAX}")
    if not 0 <= span_hours <= HOURS_MAX:
        raise UsageError(f"span_hours is {span_hours}: must be 0..{HOURS_MAX}")
    if withhold < 0:
        raise UsageError(f"withhold is {withhold}: must be 0 or more")
    if not 0 <= unknown_share <= 1:
        raise UsageError(f"unknown_share is {unknown_share}: must be 0..1")
