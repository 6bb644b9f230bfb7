"""Each planted fault is found by the oracle and told as a world small enough to read."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.conformance.conftest import Twins
from tests.conformance.mutations import MUTATIONS
from tests.conformance.test_oracle import agree
from tests.conformance.worlds import World, worlds

ARRIVALS_MAX = 3
SHRINKS_MAX = 200
"""How many worlds are lived after the first that fails; what shrinking asks beyond that counts as no failure."""

quick = settings(
    max_examples=600,
    derandomize=True,
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_fault_is_found_and_shrunk(
    twins: Twins, mutation: Callable[[], AbstractContextManager[None]]
) -> None:
    """With the fault the rows differ, and the counterexample has no more arrivals than the fault needs."""
    told: dict[World, str | None] = {}
    failing: list[World] = []

    def live(world: World) -> None:
        if world not in told:
            spent = len(told) - list(told).index(failing[0]) if failing else 0
            told[world] = _complaint(twins, world) if spent < SHRINKS_MAX else None
        complaint = told[world]
        if complaint is not None:
            failing.append(world)
            raise AssertionError(complaint)

    with mutation(), pytest.raises(AssertionError, match="handler"):
        quick(given(worlds(objects=(2, 1)))(live))()
    assert sum(len(batch.arrivals) for batch in failing[-1]) <= ARRIVALS_MAX
    # Without the fault the same world is an ordinary one.
    agree(twins, failing[-1])


def _complaint(twins: Twins, world: World) -> str | None:
    try:
        agree(twins, world)
    except AssertionError as failure:
        return str(failure)
    return None
