"""The expected end, computed from what the stories told and from which of their events came, never from a handler."""

from collections import defaultdict
from collections.abc import Sequence

from tallyhook.gateway.world.ending import ExpectedDeposit, ExpectedEnd, ExpectedTransaction, ExpectedWithdrawal
from tallyhook.gateway.world.facts import DepositFact, WithdrawalFact
from tallyhook.gateway.world.model import SimEvent, SimTransaction
from tallyhook.gateway.world.outcome_deposits import expected_deposit
from tallyhook.gateway.world.outcome_withdrawals import expected_withdrawal
from tallyhook.gateway.world.story import Stories


def expected_end(
    stories: Stories,
    events: Sequence[SimEvent],
    transactions: Sequence[SimTransaction],
    arrived: Sequence[SimEvent],
) -> ExpectedEnd:
    """What must stand in the database once `arrived` of all `events` came, in whatever order and however often."""
    live = {event.id for event in arrived if event.livemode}
    parked: dict[str, str] = {}
    deposits = _deposits(stories, live, parked)
    withdrawals = _withdrawals(stories, live, parked)
    balances = {terms.our_user_id: 0 for terms in stories.deposit_terms}
    for deposit in deposits.values():
        balances[deposit.our_user_id] += deposit.credit_minor or 0
    recorded = {event.object_id for event in arrived if event.livemode}
    moved = {
        transaction.id: ExpectedTransaction(
            id=transaction.id,
            type=transaction.type,
            direction=transaction.direction,
            amount_minor=transaction.amount_minor,
            bucket_from=transaction.bucket_from,
            bucket_to=transaction.bucket_to,
            source_id=transaction.source_id,
        )
        for transaction in transactions
        if transaction.id in recorded
    }
    rows = deposits.keys() | withdrawals.keys() | moved.keys()
    return ExpectedEnd(
        deposits=deposits,
        withdrawals=withdrawals,
        user_balances=balances,
        transactions=moved,
        processed=frozenset(live - parked.keys()),
        parked=parked,
        absent=frozenset(event.id for event in events if event.id not in live),
        absent_objects=frozenset({event.object_id for event in events} - rows),
    )


def _deposits(stories: Stories, live: set[str], parked: dict[str, str]) -> dict[str, ExpectedDeposit]:
    facts: dict[str, list[DepositFact]] = defaultdict(list)
    for fact in stories.deposit_facts:
        if fact.event_id in live:
            facts[fact.object_id].append(fact)
    deposits = {}
    for terms in stories.deposit_terms:
        came = facts[terms.object_id]
        if came and terms.correlated:
            deposits[terms.object_id] = expected_deposit(terms, came)
        else:
            parked |= {fact.event_id: "correlation" for fact in came}
    return deposits


def _withdrawals(stories: Stories, live: set[str], parked: dict[str, str]) -> dict[str, ExpectedWithdrawal]:
    facts: dict[str, list[WithdrawalFact]] = defaultdict(list)
    for fact in stories.withdrawal_facts:
        if fact.event_id in live:
            facts[fact.object_id].append(fact)
    withdrawals = {}
    for terms in stories.withdrawal_terms:
        came = facts[terms.object_id]
        if any(fact.whole for fact in came):
            withdrawals[terms.object_id] = expected_withdrawal(terms, came)
        else:
            parked |= {fact.event_id: "snapshot" for fact in came}
    return withdrawals
