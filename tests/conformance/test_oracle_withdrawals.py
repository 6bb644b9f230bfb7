"""Worlds made by hand in which withdrawals and balance transactions must end alike: each fault, each quarrel."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise, permutations
from typing import Any

import pytest

from tests.conformance.bodies import FAULTS_OF_ANY, Fault
from tests.conformance.conftest import Twins
from tests.conformance.events import Event, Told, make_event
from tests.conformance.trial import agree
from tests.conformance.withdrawal_faults import OF_FILLED, OF_REVERSED, OF_TRANSACTIONS, OF_WITHDRAWALS
from tests.conformance.worlds import Arrival, Batch

Json = dict[str, Any]
WHOLE = {"amount_total_minor": 100_000, "fee_total_minor": 2_675, "filled_minor": 30_000, "remaining_minor": 70_000}

EVERY_FAULT = (*FAULTS_OF_ANY, *OF_WITHDRAWALS, *OF_FILLED, *OF_REVERSED)


def _fill(leg: str, transaction: str | None = None) -> Json:
    return {"leg_ref": leg, "amount_minor": 30_000, "balance_transaction_id": transaction or f"btxn_{leg}"}


def _reversed(leg: str, transaction: str | None = None, reversing: str | None = None) -> Json:
    fill = _fill(leg, transaction)
    reversal = {
        "reason_code": "BANK_RECALL",
        "reverses_balance_transaction_id": fill["balance_transaction_id"],
        "balance_transaction_id": reversing or f"btxn_{leg}_back",
    }
    return {"fill": fill, "reversal": reversal}


def _event(
    order: str,
    version: int,
    kind: str,
    members: Json,
    beside: Json,
    *,
    status: str = "partially_filled",
    fault: Fault | None = None,
    partition: int = 0,
) -> Event:
    o = {"id": order, "object": "withdrawal_order", "version": version, "status": status, **members}
    told = Told({}, f"withdrawal.{kind}", beside)
    return make_event(o, f"{order}_{version}", partition, version, fault, told=told)


def _arrivals(events: Iterable[Event], first: int = 0) -> tuple[Arrival, ...]:
    return tuple(Arrival(event, offset) for offset, event in enumerate(events, first))


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ("matched", {"body_shape": OF_WITHDRAWALS}),
        ("filled", {"body_shape": OF_WITHDRAWALS, "fill_shape": OF_FILLED}),
        ("fill_reversed", {"body_shape": OF_WITHDRAWALS, "reversal_shape": OF_REVERSED}),
    ],
)
def test_every_fault_of_a_withdrawal_ends_the_same(
    twins: Twins, kind: str, known: dict[str, tuple[Fault, ...]]
) -> None:
    """Each broken rule alone, with a row and without: set aside, parked or not looked at, both sides say the same.

    The event after it shows that the withdrawal goes on as if the fault had not arrived.
    """
    events = []
    for place, fault in enumerate(EVERY_FAULT):
        for has_row in (True, False):
            order = f"wdr_{place}_{has_row}"
            beside = _reversed(f"leg_{order}")
            if has_row:
                events.append(_event(order, 1, "created", WHOLE, {}))
            events.append(_event(order, 2, kind, {}, beside, fault=fault))
            events.append(_event(order, 3, "settled", WHOLE | {"remaining_minor": 0}, {}, status="settled"))
    world = (Batch((), False, _arrivals(events)),)
    agree(twins, world)

    reasons = {row["event_id"]: row["reason"] for row in twins.handler.live(world)["quarantined"]}
    for expected, faults in known.items():
        for fault in faults:
            place = EVERY_FAULT.index(fault)
            found = {reasons.get(f"wdr_{place}_{has_row}_2") for has_row in (True, False)}
            assert found == {expected}, fault.name


def test_every_fault_of_a_balance_transaction_ends_the_same(twins: Twins) -> None:
    """Each broken rule alone: set aside, and the sound event of the same id is recorded after it."""
    content = {"type": "fee", "direction": "debit", "amount_minor": 5, "created_at": "2026-03-01T03:33:10Z"}
    events = []
    for place, fault in enumerate((*FAULTS_OF_ANY, *OF_TRANSACTIONS)):
        o = {"id": f"btxn_{place}", "object": "balance_transaction", **content}
        events.append(make_event(o, f"evt_{place}_1", 0, 1, fault, told=Told({}, "balance.debited")))
        events.append(make_event(o, f"evt_{place}_2", 0, 2, None, told=Told({}, "withdrawal.filled")))
    world = (Batch((), False, _arrivals(events)),)
    agree(twins, world)

    quarantined = twins.handler.live(world)["quarantined"]
    reasons = Counter(row["reason"] for row in quarantined)
    dates = sum("created_at='" in fault.name for fault in OF_TRANSACTIONS)
    assert (reasons["body_date"], reasons["body_shape"]) == (dates, len(OF_TRANSACTIONS) - dates)
    assert len(quarantined) == len(FAULTS_OF_ANY) + len(OF_TRANSACTIONS)


QUARRELS: dict[str, list[tuple[str, Json]]] = {
    "one leg filled twice": [("filled", {"fill": _fill("leg_1")}), ("filled", {"fill": _fill("leg_1")})],
    "a leg filled here, reversed there": [("filled", {"fill": _fill("leg_1")}), ("fill_reversed", _reversed("leg_1"))],
    "one leg reversed twice": [("fill_reversed", _reversed("leg_1")), ("fill_reversed", _reversed("leg_1"))],
    "two legs, one reversed transaction": [
        ("fill_reversed", _reversed("leg_1", "btxn_1")),
        ("fill_reversed", _reversed("leg_2", "btxn_1")),
    ],
    "two legs, one reversing transaction": [
        ("fill_reversed", _reversed("leg_1", reversing="btxn_back")),
        ("fill_reversed", _reversed("leg_2", reversing="btxn_back")),
    ],
    "reversed here, reversing there": [
        ("fill_reversed", _reversed("leg_1", "btxn_1")),
        ("fill_reversed", _reversed("leg_2", reversing="btxn_1")),
    ],
    "two fills of one transaction": [
        ("filled", {"fill": _fill("leg_1", "btxn_1")}),
        ("filled", {"fill": _fill("leg_2", "btxn_1")}),
    ],
}


@pytest.mark.parametrize("quarrel", QUARRELS)
@pytest.mark.parametrize("sparse", [True, False])
def test_two_withdrawals_quarrel_about_one_fact(twins: Twins, quarrel: str, sparse: bool) -> None:
    """Whoever is applied first has the fact, be the two in one batch or in several, known or waiting for a row."""
    members = {} if sparse else WHOLE
    (one_kind, one), (other_kind, other) = QUARRELS[quarrel]
    facts = (
        _event("wdr_1", 1, one_kind, members, one, partition=0),
        _event("wdr_2", 1, other_kind, members, other, partition=1),
    )
    builders = (_event("wdr_2", 2, "created", WHOLE, {}, partition=1), _event("wdr_1", 2, "created", WHOLE, {}))
    for order in permutations((*facts, *builders)):
        copies = _arrivals(facts, 10)
        agree(twins, (Batch((), False, (*_arrivals(order), *copies)),))
        agree(twins, (*(Batch((), False, (arrival,)) for arrival in _arrivals(order)), Batch((), True, copies)))


@pytest.mark.parametrize("ends", [(2,), (3,), (1, 2, 3), ()], ids=["2 + 2", "3 + 1", "one by one", "in one batch"])
def test_a_refused_event_that_is_applied_later(twins: Twins, ends: tuple[int, ...]) -> None:
    """A refund that no bigint holds is refused; once another event has refunded, its copy is applied and closes it."""
    known = WHOLE | {"fee_total_minor": 5}
    beyond = known | {"fee_recognized_minor": 1 - 2**63}
    created = _event("wdr_1", 1, "created", known, {}, status="open")
    refused = _event("wdr_1", 3, "expired", beyond, {}, status="expired")
    refunds = _event("wdr_1", 2, "expired", known, {}, status="expired")
    arrivals = _arrivals((created, refused, refunds, refused))
    world = tuple(Batch((), False, arrivals[start:end]) for start, end in pairwise((0, *ends, len(arrivals))))

    agree(twins, world)
    assert [row["state"] for row in twins.handler.live(world)["quarantined"]] == ["redriven"]
