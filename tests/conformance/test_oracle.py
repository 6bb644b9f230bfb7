"""The bulk sink must leave the same rows as the one-event-a-transaction handler for the same arrivals.

`ORACLE_WORLDS` sets how many random worlds are lived (60), `ORACLE_SEED` repeats a run.
"""

import os
import secrets
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from sinks.batch import PARKED_ROWS_MAX
from tests.conformance.bodies import FAULTS_OF_ANY, FAULTS_OF_DEPOSITS
from tests.conformance.conftest import Twins
from tests.conformance.events import Event, make_event
from tests.conformance.histories import Correlation
from tests.conformance.trial import Trial, agree
from tests.conformance.worlds import Arrival, Batch, worlds

WORLDS = int(os.environ.get("ORACLE_WORLDS", "60"))
SEED = int(os.environ.get("ORACLE_SEED") or secrets.randbits(32))

unhurried = settings(
    max_examples=WORLDS,
    deadline=None,
    database=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.generate, Phase.shrink],
)
BOUNDS = st.sampled_from((PARKED_ROWS_MAX, PARKED_ROWS_MAX, 1, 2))
MONEY = {
    "ordered_amount_minor": 500_000,
    "transferred_amount_minor": 500_000,
    "amount_received_minor": 500_000,
    "fee_total_minor": 7_500,
    "credited_amount_minor": 492_500,
}
FLAG = {
    "claim_id": "clm_1",
    "cause": "additional_transfer",
    "amount_minor": 10_000,
    "slip_received_at": "2026-03-01T03:33:10Z",
    "status": "open",
    "action_required": "contact_support",
}


@pytest.mark.timeout(180 + WORLDS)
def test_random_worlds_end_in_the_same_rows(twins: Twins) -> None:
    """Whatever comes in whatever order, in whatever batches: every table is that of the reference handler."""
    trial = Trial(twins)
    print(f"ORACLE_SEED={SEED} ORACLE_WORLDS={WORLDS}")
    try:
        seed(SEED)(unhurried(given(worlds(), BOUNDS)(trial.live)))()
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


@pytest.mark.parametrize("apart", [True, False], ids=["in two batches", "in one batch"])
def test_a_waiting_event_is_set_aside_where_its_copy_arrives(twins: Twins, apart: bool) -> None:
    """A parked event whose claim collides leaves the inbox; its copy is judged anew, be it in the same batch or not."""
    first = _open("dep_1", "evt_1", {"overpayment": FLAG})
    waiting = _open("dep_2", "evt_2", {"overpayment": FLAG})
    one, other = Correlation("dep_1", "ref_1", "ord_1", "usr_1"), Correlation("dep_2", "ref_2", "ord_2", "usr_2")
    before = Batch((one,), False, (Arrival(first, 0), Arrival(waiting, 1)))
    agree(twins, (before, Batch((other,), apart, (Arrival(waiting, 2),))))


def _open(deposit: str, event_id: str, members: dict[str, Any]) -> Event:
    o = {"id": deposit, "object": "deposit_order", "version": 1, "status": "open", **members}
    return make_event(o, event_id, 0, 1, None)
