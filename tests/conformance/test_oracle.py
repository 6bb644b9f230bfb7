"""The bulk sink must leave the same rows as the one-event-a-transaction handler for the same arrivals.

`ORACLE_WORLDS` sets how many random worlds are lived (40), `ORACLE_SEED` repeats a run.
"""

import os
import secrets

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.conformance.conftest import Twins
from tests.conformance.tables import differences
from tests.conformance.worlds import World, worlds

WORLDS = int(os.environ.get("ORACLE_WORLDS", "40"))
SEED = int(os.environ.get("ORACLE_SEED") or secrets.randbits(32))

unhurried = settings(
    max_examples=WORLDS,
    deadline=None,
    database=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.generate, Phase.shrink],
)


def agree(twins: Twins, world: World) -> None:
    """Raises AssertionError with the rows that only one of the two has."""
    expected = twins.handler.live(world)
    found = differences(expected, twins.sink.live(world))
    assert not found, "\n".join([*found, "", *told(world)])


def told(world: World) -> list[str]:
    """A world for a person: what was written and what arrived, batch by batch."""
    lines = []
    for number, batch in enumerate(world):
        lines += [f"{row}" for row in batch.correlations]
        lines.append(f"batch {number}{', parked ones first' if batch.looks_first else ''}")
        for arrival in batch.arrivals:
            fault = f" ({arrival.event.fault})" if arrival.event.fault else ""
            lines.append(f"  at {arrival.source_offset}{fault}: {arrival.event.body.decode(errors='replace')}")
    return lines


def test_random_worlds_end_in_the_same_rows(twins: Twins) -> None:
    """Whatever comes in whatever order, in whatever batches: every table is that of the reference handler."""

    @seed(SEED)
    @unhurried
    @given(worlds())
    def live(world: World) -> None:
        agree(twins, world)

    try:
        live()
    except Exception as failure:
        failure.add_note(f"repeat with ORACLE_SEED={SEED} ORACLE_WORLDS={WORLDS}")
        raise
