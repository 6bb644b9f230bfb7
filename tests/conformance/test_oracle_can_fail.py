"""Each planted fault is found by the oracle and told as a world small enough to read."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sinks.batch import PARKED_ROWS_MAX
from tests.conformance.conftest import Twins
from tests.conformance.events import make_event
from tests.conformance.histories import Noun
from tests.conformance.mutations import MUTATIONS
from tests.conformance.trial import SmallEnough, Trial, agree
from tests.conformance.withdrawal_mutations import WITHDRAWAL_MUTATIONS, waiting_chunks_come_last
from tests.conformance.worlds import Arrival, Batch, worlds

ARRIVALS_MAX = 3
quick = settings(
    max_examples=1000,
    derandomize=True,
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)


PLANTED: list[tuple[Noun, Callable[[], AbstractContextManager[None]]]] = [
    *(("deposit", mutation) for mutation in MUTATIONS),
    *(("withdrawal", mutation) for mutation in WITHDRAWAL_MUTATIONS),
]


@pytest.mark.parametrize(("noun", "mutation"), PLANTED, ids=[mutation.__name__ for _, mutation in PLANTED])
def test_a_planted_fault_is_found_and_shrunk(
    twins: Twins, noun: Noun, mutation: Callable[[], AbstractContextManager[None]]
) -> None:
    """With the fault the rows differ, and the counterexample has no more arrivals than the fault needs."""
    trial = Trial(twins, ARRIVALS_MAX)
    with mutation(), pytest.raises(SmallEnough, match="handler"):
        quick(given(worlds(objects=(1,), nouns=(noun,)), st.just(PARKED_ROWS_MAX))(trial.live))()
    assert trial.failing is not None
    # Without the fault the same world is an ordinary one.
    agree(twins, trial.failing)


def test_the_order_of_waiting_chunks_is_watched(twins: Twins) -> None:
    """Two snapshots too sparse for a row wait in the database; were the newer one first, the older would be late."""
    sparse = {"filled_minor": 1, "object": "withdrawal_order", "id": "wdr_1"}
    waiting = [make_event({**sparse, "version": v, "status": "open"}, f"evt_{v}", 0, v, None) for v in (2, 3)]
    whole = {**sparse, "version": 1, "status": "open", "amount_total_minor": 5, "remaining_minor": 5}
    builder = make_event(whole, "evt_1", 0, 1, None)
    first = Batch((), False, tuple(Arrival(event, offset) for offset, event in enumerate(waiting)))
    world = (first, Batch((), False, (Arrival(builder, 2),)))

    with waiting_chunks_come_last(), pytest.raises(AssertionError, match="handler"):
        agree(twins, world)
    agree(twins, world)
