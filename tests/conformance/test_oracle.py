"""The bulk sink must leave the same rows as the one-event-a-transaction handler for the same arrivals.

`ORACLE_WORLDS` sets how many random worlds are lived (40), `ORACLE_SEED` repeats a run.
"""

import os
import secrets
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.conformance.bodies import FAULTS_OF_ANY, FAULTS_OF_DEPOSITS
from tests.conformance.conftest import Twins
from tests.conformance.tables import differences
from tests.conformance.worlds import Arrival, Batch, Correlation, World, make_event, worlds

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
MONEY = {
    "ordered_amount_minor": 500_000,
    "transferred_amount_minor": 500_000,
    "amount_received_minor": 500_000,
    "fee_total_minor": 7_500,
    "credited_amount_minor": 492_500,
}


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


def test_every_fault_ends_the_same_in_every_status(twins: Twins) -> None:
    """Each broken rule alone, on a known and on an unknown deposit: set aside or not, both sides say the same.

    The event after it shows that the deposit goes on as if the fault had not arrived.
    """
    correlations: list[Correlation] = []
    arrivals: list[Arrival] = []
    for fault in (*FAULTS_OF_ANY, *FAULTS_OF_DEPOSITS):
        for status in ("settled", "reversed", "expired", "open"):
            for known in (True, False):
                place = len(arrivals) // 2
                deposit: dict[str, Any] = {"id": f"dep_{place}", "object": "deposit_order", **MONEY}
                if known:
                    correlations.append(Correlation(deposit["id"], f"ref_{place}", f"ord_{place}", "usr_1"))
                faulty = make_event({**deposit, "version": 1, "status": status}, f"evt_{place}_1", 0, 1, fault)
                sound = make_event({**deposit, "version": 2, "status": "settled"}, f"evt_{place}_2", 0, 2, None)
                arrivals += [Arrival(faulty, 2 * place), Arrival(sound, 2 * place + 1)]
    agree(twins, (Batch(tuple(correlations), False, tuple(arrivals)),))
