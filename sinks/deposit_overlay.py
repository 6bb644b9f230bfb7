"""Deposits on top of what was loaded: what an event finds, and what it leaves for the events after it."""

from schemas.headers import EventHeaders
from sinks.contents import DepositContent
from sinks.domain.decision import DepositDecision, DepositState, Refusal
from sinks.domain.overpayment import same_flag
from sinks.loaded import Loaded
from sinks.plan import EntryRow, Plan


def state_of(loaded: Loaded, object_id: str) -> DepositState | None:
    """What is known of a deposit; None while nobody has said whose it is."""
    state = loaded.deposits.get(object_id)
    if state is None and object_id in loaded.correlations:
        state = DepositState(object_id, loaded.correlations[object_id])
    return state


def decide(loaded: Loaded, state: DepositState, content: DepositContent) -> DepositDecision | Refusal:
    """What the event does; a claim that was seen with other content refuses it."""
    decision = content.handler.decide(state, content.event)
    if isinstance(decision, Refusal) or decision.flag is None:
        return decision
    stored = loaded.flags.get(decision.flag.flag.claim_id)
    if stored is not None and not same_flag(stored, decision.flag):
        return Refusal(
            "overpayment_collision",
            f"claim {stored.flag.claim_id} was seen with other content on {stored.pg_deposit_id}"
            f" version {stored.observed_deposit_version}",
        )
    return decision


def move(plan: Plan, loaded: Loaded, headers: EventHeaders, decision: DepositDecision) -> list[EntryRow]:
    """Writes rows and facts of the decision into the plan; gives the new balance entries, which are numbered next."""
    state = decision.state
    loaded.deposits[state.pg_deposit_id] = state
    if state.snapshot is not None:
        plan.deposits[state.pg_deposit_id] = state
    plan.reversal_differs += decision.reversal_differs
    flag = decision.flag
    if flag is not None and flag.flag.claim_id not in loaded.flags:
        loaded.flags[flag.flag.claim_id] = plan.flags[flag.flag.claim_id] = flag
    if not decision.entries:
        return []
    entries = [
        EntryRow(entry, headers.id, state.pg_deposit_id, state.correlation.our_order_id) for entry in decision.entries
    ]
    plan.entries += entries
    return entries
