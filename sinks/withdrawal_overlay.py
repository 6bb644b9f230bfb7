"""Withdrawals on top of what was loaded: what an event finds, and what it leaves for the events after it."""

from dataclasses import replace

from sinks.domain.withdrawal_state import Withdrawal, WithdrawalDecision, WithdrawalState
from sinks.loaded import Loaded
from sinks.plan import Plan


def state_of(loaded: Loaded, object_id: str) -> WithdrawalState:
    """What is known of a withdrawal; its row is None until an event could build it."""
    return loaded.withdrawals.get(object_id) or WithdrawalState(object_id)


def move(plan: Plan, loaded: Loaded, before: WithdrawalState, decision: WithdrawalDecision) -> None:
    """Writes row and facts of the decision into the plan."""
    state = decision.state
    loaded.withdrawals[state.pg_withdrawal_id] = state
    if state.row is not None and state.row is not before.row:
        _move_row(plan, before.row, state.row)
    plan.fee_differs += decision.fee_differs
    fill, tombstone = decision.fill, decision.tombstone
    if fill is not None:
        plan.fills[fill.leg_ref] = fill
        plan.unfilled.discard(fill.leg_ref)
        loaded.facts.add((fill,), ())
    if tombstone is not None:
        plan.reversals[tombstone.leg_ref] = tombstone
        loaded.facts.add((), (tombstone,))
        if loaded.facts.fill(tombstone.leg_ref) is None:
            plan.unfilled.add(tombstone.leg_ref)
    if decision.fill_reversed is not None:
        leg_ref, reversed_at = decision.fill_reversed
        known = loaded.facts.fill(leg_ref)
        if known is not None:
            loaded.facts.add((replace(known, reversed_at=reversed_at),), ())
        if leg_ref in plan.fills:
            plan.fills[leg_ref] = replace(plan.fills[leg_ref], reversed_at=reversed_at)
        else:
            plan.fill_marks[leg_ref] = reversed_at


def _move_row(plan: Plan, before: Withdrawal | None, row: Withdrawal) -> None:
    """The version guard takes a row whose version rose; one of which only markers changed must be as it was loaded."""
    key = row.pg_withdrawal_id
    if before is None or row.pg_version != before.pg_version or key in plan.withdrawals:
        plan.withdrawals[key] = row
        plan.marked.pop(key, None)
    else:
        plan.marked[key] = row
