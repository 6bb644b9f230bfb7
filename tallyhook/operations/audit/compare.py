"""One object: what its stored events give, held against what is stored of it."""

from collections.abc import Collection, Sequence

from tallyhook.operations.audit import compare_deposits, compare_transactions, compare_withdrawals
from tallyhook.operations.audit.compare_effects import compare_outbox
from tallyhook.operations.audit.compare_entries import compare_entries
from tallyhook.operations.audit.expected import Outcome, judge_without_rules
from tallyhook.operations.audit.findings import Check, Checks
from tallyhook.operations.audit.numbers import Kept
from tallyhook.operations.audit.stored_event import DEPOSIT, TRANSACTION, WITHDRAWAL
from tallyhook.operations.audit.stored_objects import StoredObject
from tallyhook.operations.audit.withdrawals import Withdrawal

RULES = frozenset((DEPOSIT, WITHDRAWAL, TRANSACTION))


def compare(stored: StoredObject, kept: Kept, checks: Checks) -> None:
    """Answers every check that is about one object.

    Where older events may have been pruned, a withdrawal may have had a row before the first kept one; or that built
    it, and pruned ones that had waited for it were applied after it. If either is without a counterexample, so is the
    object.
    """
    kinds = stored.kinds
    if WITHDRAWAL not in kinds:
        _compare(stored, kept, checks, kinds, None)
        return
    if not kept.inbox_is_pruned(stored.partition):
        _compare(stored, kept, checks, kinds, compare_withdrawals.recompute(stored))
        return
    doubtful, waited = Checks(), Checks()
    _compare(stored, kept, doubtful, kinds, compare_withdrawals.recompute_in_doubt(stored))
    if doubtful.found:
        _compare(stored, kept, waited, kinds, compare_withdrawals.recompute_in_doubt(stored, had_row=False))
    checks.add(waited if doubtful.found and not waited.found else doubtful)


def _compare(
    stored: StoredObject, kept: Kept, checks: Checks, kinds: Collection[str], withdrawal: Withdrawal | None
) -> None:
    outcomes: list[Outcome] = []
    if DEPOSIT in kinds:
        deposit = compare_deposits.recompute(stored, kept)
        compare_deposits.compare_row(stored, deposit, checks["aggregates"])
        compare_deposits.compare_flags(stored, deposit, checks["flags"])
        compare_entries(stored, deposit, checks["ledger"])
        outcomes.append(deposit.outcome)
    if withdrawal is not None:
        compare_withdrawals.compare_row(stored, withdrawal, checks["aggregates"])
        compare_withdrawals.compare_chunks(stored, withdrawal, checks["chunks"])
        outcomes.append(withdrawal.outcome)
    if TRANSACTION in kinds:
        outcomes.append(compare_transactions.compare(stored, kept, checks["transactions"]))
    if not RULES.issuperset(kinds):
        outcomes.append(judge_without_rules([event for event in stored.events if event.kind not in RULES]))
    for outcome in outcomes:
        _compare_verdicts(stored, outcome, checks["verdicts"])
    compare_outbox(stored, _effects_of(outcomes), kept, checks["outbox"])


def _effects_of(outcomes: Sequence[Outcome]) -> Outcome:
    if len(outcomes) == 1:
        return outcomes[0]
    return Outcome(effects=[effect for outcome in outcomes for effect in outcome.effects])


def _compare_verdicts(stored: StoredObject, outcome: Outcome, check: Check) -> None:
    check.looked_at += len(outcome.judgements)
    for event, why in outcome.unreadable:
        check.fail(
            f"event {event.event_id} of {stored.id} is in the inbox, but had to be quarantined: {why}",
            event_id=event.event_id,
            object_id=stored.id,
        )
    for judgement in outcome.judgements:
        event = judgement.event
        if (event.verdict, event.reason) != (judgement.verdict, judgement.reason):
            check.fail(
                f"event {event.event_id} of {stored.id} is noted as {_words(event.verdict, event.reason)}, and must be"
                f" {_words(judgement.verdict, judgement.reason)}",
                event_id=event.event_id,
                object_id=stored.id,
            )


def _words(verdict: str, reason: str | None) -> str:
    return verdict if reason is None else f"{verdict} ({reason})"
