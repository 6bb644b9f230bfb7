"""Small worlds by name: a day of withdrawals for the demo, every life once, or one life alone."""

import random
from datetime import datetime, timedelta

from tallyhook.errors import UsageError
from tallyhook.gateway.world.assembly import assemble
from tallyhook.gateway.world.generate import MERCHANT_ID, SCENARIOS, STARTED_AT, Teller
from tallyhook.gateway.world.model import World

WITHDRAWAL_DAY = "withdrawal_day"
EVERY_LIFE = "every_life"
BETWEEN = timedelta(minutes=20)

_DAY = ("withdrawal_three_chunks", "recall_with_replacement", "withdrawal_half_filled_expiry")
_WITHHELD_VERSION = 5
"""The second chunk of the guide's order: the totals come right without it, only the timeline lacks a line."""


def names() -> list[str]:
    """Every name that `scenario_named` takes."""
    return [WITHDRAWAL_DAY, EVERY_LIFE, *SCENARIOS]


def scenario_named(name: str, seed: int, *, merchant_id: str = MERCHANT_ID, started_at: datetime = STARTED_AT) -> World:
    """A small world.

    `withdrawal_day` has the guide's order of eight events, whose second chunk is never delivered, a recall with its
    replacement, and a half-filled expiry, with ids that are easy on the eye. `every_life` has each life once. Any other
    name is a life of `generate`, alone with the opening of the wallet.

    Args:
        started_at: virtual time, UTC, whole milliseconds.

    Raises:
        UsageError: no world has that name.
    """
    rng = random.Random(seed)  # noqa: S311  repeatable on purpose; nothing here is a secret
    lives: tuple[str, ...]
    if name == WITHDRAWAL_DAY:
        lives, plain = _DAY, True
    elif name == EVERY_LIFE:
        lives, plain = tuple(SCENARIOS), False
    elif name in SCENARIOS:
        lives, plain = (name,), False
    else:
        raise UsageError(f"there is no world named {name!a}: choose one of {', '.join(names())}")
    start = started_at.replace(microsecond=started_at.microsecond // 1_000 * 1_000)
    teller = Teller(rng, start, len(lives), unknown_share=0.0 if plain else 0.1, plain_names=plain)
    for place, life in enumerate(lives, start=1):
        teller.tell(life, start + place * BETWEEN)
    withheld = _second_chunk(teller) if name == WITHDRAWAL_DAY else ()
    return assemble(
        teller.told,
        seed=seed,
        merchant_id=merchant_id,
        started_at=start,
        scenarios=dict(teller.scenarios),
        withheld=withheld,
    )


def _second_chunk(teller: Teller) -> tuple[str, ...]:
    first = teller.told.withdrawal_terms[0].object_id
    return tuple(
        fact.event_id
        for fact in teller.told.withdrawal_facts
        if fact.object_id == first and fact.version == _WITHHELD_VERSION
    )
