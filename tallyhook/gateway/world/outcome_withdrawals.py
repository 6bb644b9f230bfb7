"""What must come of one withdrawal, whatever the order in which its events came."""

from collections.abc import Sequence
from dataclasses import replace

from tallyhook.gateway.world.ending import ExpectedEffect, ExpectedTombstone, ExpectedWithdrawal
from tallyhook.gateway.world.facts import WithdrawalFact, WithdrawalTerms


def expected_withdrawal(terms: WithdrawalTerms, came: Sequence[WithdrawalFact]) -> ExpectedWithdrawal:
    """The end of a withdrawal.

    Args:
        came: the events that came, a whole one among them; without one no row could be built.
    """
    last = max(came, key=lambda fact: fact.version)
    earlier = [fact for fact in came if fact is not last]
    tombstones = [fact.tombstone for fact in came if fact.tombstone is not None]
    taken_back = {tombstone.leg_ref for tombstone in tombstones}
    fills = [fact.fill for fact in came if fact.fill is not None]
    replacements = {tombstone.replacement_withdrawal_id for tombstone in tombstones} - {None}
    if len(replacements) > 1:
        raise ValueError(f"withdrawal {terms.object_id} has two replacements: nobody can say which one stays")
    return ExpectedWithdrawal(
        id=terms.object_id,
        version=last.version,
        status=last.status,
        our_ref=terms.our_ref,
        amount_total_minor=terms.amount_total_minor,
        fee_total_minor=terms.fee_total_minor,
        total_locked_minor=terms.total_locked_minor,
        max_splits=terms.max_splits,
        filled_minor=last.filled_minor,
        remaining_minor=last.remaining_minor,
        refunded_minor=_left(last.refunded_minor, [fact.refunded_minor for fact in earlier]),
        fee_recognized_minor=_left(last.fee_recognized_minor, [fact.fee_recognized_minor for fact in earlier]),
        settled_splits=_left(last.settled_splits, [fact.settled_splits for fact in earlier]),
        replacement_withdrawal_id=next(iter(replacements), None),
        closed=_closed(last, came),
        refund_enqueued=last.status in ("expired", "canceled"),
        user_lock_released=last.status == "rejected",
        fills=tuple(replace(fill, reversed=fill.leg_ref in taken_back) for fill in fills),
        tombstones=tuple(tombstones),
        effects=(
            *_once(terms, last, came),
            *(_compensation(terms, tombstone) for tombstone in tombstones),
            *_shown(came, last),
        ),
    )


def _left(last: int | None, earlier: Sequence[int | None]) -> frozenset[int | None]:
    """A member that the last version has stays as it says; otherwise any earlier value may stay, or none."""
    return frozenset({last}) if last is not None else frozenset({None, *earlier})


def _is_paid(fact: WithdrawalFact) -> bool:
    return fact.status == "settled" and fact.remaining_minor == 0


def _recalled_after_settlement(came: Sequence[WithdrawalFact]) -> bool:
    return any(fact.tombstone is not None and fact.status == "settled" for fact in came)


def _closed(last: WithdrawalFact, came: Sequence[WithdrawalFact]) -> bool | None:
    """An order that was recalled after its settlement stays open again.

    A recall from before the settlement opens it too, where it comes last; the order of arrival decides.
    """
    if not _is_paid(last) or _recalled_after_settlement(came):
        return False
    return None if any(fact.tombstone is not None for fact in came) else True


def _once(terms: WithdrawalTerms, last: WithdrawalFact, came: Sequence[WithdrawalFact]) -> list[ExpectedEffect]:
    """The effects that happen once in an order's life; their payloads come from the row."""
    known = {"withdrawal_id": terms.object_id, "ticket": terms.our_ref}
    effects = []

    def add(effect: str, payload: dict[str, str | int | bool | None], *, certain: bool) -> None:
        effects.append(ExpectedEffect(f"withdrawal:{terms.object_id}:{effect}", effect, certain, payload))

    if any(_is_paid(fact) for fact in came):
        certain = _is_paid(last) and not _recalled_after_settlement(came)
        add("close_withdrawal", dict(known), certain=certain)
    if last.status in ("expired", "canceled"):
        refunded, recognized = last.refunded_minor, last.fee_recognized_minor
        if refunded is None or recognized is None:
            raise ValueError(f"withdrawal {terms.object_id} ends {last.status} without saying what goes back")
        fee_unused = terms.fee_total_minor - recognized
        amounts = {
            "refunded_minor": refunded,
            "fee_unused_minor": fee_unused,
            "release_minor": refunded + fee_unused,
            "debited_minor": last.filled_minor + recognized,
        }
        add("refund_unfilled", {**known, **amounts}, certain=True)
    if last.status == "rejected":
        add("release_user_lock", dict(known), certain=True)
    return effects


def _compensation(terms: WithdrawalTerms, tombstone: ExpectedTombstone) -> ExpectedEffect:
    """Once a leg, also from an event that came late."""
    return ExpectedEffect(
        dedupe_key=f"withdrawal-fill:{tombstone.leg_ref}:reverse:compensate_reversed_fill",
        effect="compensate_reversed_fill",
        certain=True,
        payload={
            "withdrawal_id": terms.object_id,
            "leg_ref": tombstone.leg_ref,
            "amount_minor": tombstone.amount_minor,
            "reason_code": tombstone.reason_code,
            "reverses_balance_transaction_id": tombstone.reverses_balance_transaction_id,
            "reversal_balance_transaction_id": tombstone.reversal_balance_transaction_id,
            "replacement_withdrawal_id": tombstone.replacement_withdrawal_id,
        },
    )


def _shown(came: Sequence[WithdrawalFact], last: WithdrawalFact) -> list[ExpectedEffect]:
    """The last version always advances its order; an earlier one does where it did not come late."""
    return [
        ExpectedEffect(
            f"{fact.event_id}:{fact.shown.effect}", fact.shown.effect, certain=fact is last, payload=fact.shown.payload
        )
        for fact in came
        if fact.shown is not None
    ]
