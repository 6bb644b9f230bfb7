"""Faults planted into the rules of withdrawals, as `mutations` does it for deposits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from schemas.effects import RefundUnfilled
from schemas.events import WITHDRAWAL_KIND
from sinks.domain.decide import WITHDRAWALS, AnyHandler, handler_for
from sinks.domain.decision import Refusal
from sinks.domain.withdrawal_state import Facts, NotYet, WithdrawalDecision, WithdrawalReading, WithdrawalState
from tests.conformance.mutations import changed_statement

Decided = WithdrawalDecision | NotYet | Refusal
Decide = Callable[[WithdrawalState, WithdrawalReading, Facts], Decided]


@contextmanager
def equal_version_moves_totals() -> Iterator[None]:
    """The guard says `<=` where it must say `<`, in the decision and in the statement that writes the row."""

    def loosened(state: WithdrawalState, reading: WithdrawalReading, facts: Facts) -> Decided:
        version = reading.event.data.object.version
        if state.row is not None and state.row.pg_version == version:
            state = replace(state, row=replace(state.row, pg_version=version - 1))
        return WITHDRAWALS.decide(state, reading, facts)

    guard = ("w.pg_version < EXCLUDED.pg_version", "w.pg_version <= EXCLUDED.pg_version")
    with _deciding(loosened), changed_statement("write_withdrawals", *guard):
        yield


@contextmanager
def late_fill_is_lost() -> Iterator[None]:
    """The chunk of a stale event is thrown away with the rest of it."""

    def forgetful(state: WithdrawalState, reading: WithdrawalReading, facts: Facts) -> Decided:
        decision = WITHDRAWALS.decide(state, reading, facts)
        if isinstance(decision, WithdrawalDecision) and decision.verdict == "late":
            return replace(decision, fill=None)
        return decision

    with _deciding(forgetful):
        yield


@contextmanager
def late_reversal_is_not_compensated() -> Iterator[None]:
    """A reversal pays only where the version guard lets its event through."""

    def guarded(state: WithdrawalState, reading: WithdrawalReading, facts: Facts) -> Decided:
        decision = WITHDRAWALS.decide(state, reading, facts)
        if isinstance(decision, WithdrawalDecision) and decision.verdict == "late":
            return replace(decision, effects=())
        return decision

    with _deciding(guarded):
        yield


@contextmanager
def set_once_members_are_overwritten() -> Iterator[None]:
    """The fee of the whole order follows the last event instead of the first that told it."""

    def overwriting(state: WithdrawalState, reading: WithdrawalReading, facts: Facts) -> Decided:
        if state.row is not None and reading.event.data.object.fee_total_minor is not None:
            state = replace(state, row=replace(state.row, fee_total_minor=None))
        return WITHDRAWALS.decide(state, reading, facts)

    with _deciding(overwriting):
        yield


@contextmanager
def settled_tombstone_is_ignored() -> Iterator[None]:
    """An order is closed although a chunk was taken back after it had settled."""

    def careless(state: WithdrawalState, reading: WithdrawalReading, facts: Facts) -> Decided:
        return WITHDRAWALS.decide(replace(state, settled_tombstone=False), reading, facts)

    with _deciding(careless):
        yield


@contextmanager
def release_without_the_fee() -> Iterator[None]:
    """What goes back to the user lacks the fee that was not used."""

    def mean(state: WithdrawalState, reading: WithdrawalReading, facts: Facts) -> Decided:
        decision = WITHDRAWALS.decide(state, reading, facts)
        if not isinstance(decision, WithdrawalDecision):
            return decision
        effects = [
            replace(effect, payload=_without_fee(effect.payload))
            if isinstance(effect.payload, RefundUnfilled)
            else effect
            for effect in decision.effects
        ]
        return replace(decision, effects=tuple(effects))

    with _deciding(mean):
        yield


@contextmanager
def waiting_chunks_come_last() -> Iterator[None]:
    """What waited for a row is applied from the last to the first; found in a world made for it, as it needs four."""
    with changed_statement("load_waiting", "ORDER BY i.arrival_seq", "ORDER BY i.arrival_seq DESC"):
        yield


WITHDRAWAL_MUTATIONS = (
    equal_version_moves_totals,
    late_fill_is_lost,
    late_reversal_is_not_compensated,
    set_once_members_are_overwritten,
    settled_tombstone_is_ignored,
    release_without_the_fee,
)


def _without_fee(payload: RefundUnfilled) -> RefundUnfilled:
    return RefundUnfilled(
        payload.withdrawal_id,
        payload.ticket,
        payload.refunded_minor,
        payload.fee_unused_minor,
        payload.refunded_minor,
        payload.debited_minor,
    )


@contextmanager
def _deciding(decide: Decide) -> Iterator[None]:
    """Puts a changed decision in the place of the sink's own."""
    mutated = replace(WITHDRAWALS, decide=decide)

    def chosen(object_kind: str) -> AnyHandler | None:
        return mutated if object_kind == WITHDRAWAL_KIND else handler_for(object_kind)

    with patch("sinks.records.handler_for", chosen):
        yield
