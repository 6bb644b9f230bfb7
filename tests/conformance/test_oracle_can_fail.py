"""Each planted fault is found by the oracle and told as a world small enough to read."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.conformance.conftest import Twins
from tests.conformance.mutations import MUTATIONS
from tests.conformance.trial import Trial, agree
from tests.conformance.worlds import worlds

ARRIVALS_MAX = 3
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
    trial = Trial(twins)
    with mutation(), pytest.raises(AssertionError, match="handler"):
        quick(given(worlds(objects=(2, 1)))(trial.live))()
    assert trial.failing is not None
    assert sum(len(batch.arrivals) for batch in trial.failing) <= ARRIVALS_MAX
    # Without the fault the same world is an ordinary one.
    agree(twins, trial.failing)
