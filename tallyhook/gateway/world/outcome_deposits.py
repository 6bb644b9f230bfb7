"""What must come of one deposit, whatever the order in which its events came."""

from collections.abc import Sequence

from tallyhook.gateway.world.ending import ExpectedDeposit, ExpectedEffect
from tallyhook.gateway.world.facts import DepositFact, DepositTerms


def expected_deposit(terms: DepositTerms, came: Sequence[DepositFact]) -> ExpectedDeposit:
    """The end of a correlated deposit.

    Args:
        came: the events that came, at least one. After a settlement a life only settles again or is reversed, so that
            the last version alone says whether the user keeps a credit.

    Raises:
        ValueError: another status follows a settlement; then the order of arrival would decide about money.
    """
    last = max(came, key=lambda fact: fact.version)
    settled = [fact for fact in came if fact.status == "settled"]
    if settled and last.status not in ("settled", "reversed"):
        raise ValueError(f"deposit {terms.object_id} settles and ends {last.status}: nobody can say who is credited")
    claims = {fact.claim.claim_id: (fact.claim.cause, fact.claim.amount_minor) for fact in came if fact.claim}
    return ExpectedDeposit(
        id=terms.object_id,
        version=last.version,
        status=last.status,
        our_order_id=terms.our_order_id,
        our_user_id=terms.our_user_id,
        ordered_amount_minor=last.amounts.ordered,
        transferred_amount_minor=last.amounts.transferred,
        amount_received_minor=last.amounts.received,
        fee_total_minor=last.amounts.fee,
        credited_amount_minor=last.amounts.credited,
        credit_minor=last.amounts.received if last.status == "settled" else None,
        taken_back=last.status == "reversed",
        claims=claims,
        projected_claim=last.claim.claim_id if last.claim else None,
        effects=(*_once(terms, settled, last), *_shown(came, last)),
    )


def _once(terms: DepositTerms, settled: Sequence[DepositFact], last: DepositFact) -> list[ExpectedEffect]:
    """The effects that happen once in a deposit's life: both or neither where it was taken back."""
    if not settled:
        return []
    first = settled[0]
    release = ExpectedEffect(
        dedupe_key=f"deposit:{terms.object_id}:release_goods",
        effect="release_goods",
        certain=last.status == "settled",
        payload={
            "order_id": terms.our_order_id,
            "partial": first.partial,
            "received": first.amounts.received,
            "ordered": first.amounts.ordered,
        },
    )
    if last.status == "settled":
        return [release]
    hold = ExpectedEffect(
        f"deposit:{terms.object_id}:hold_goods", "hold_goods", certain=False, payload={"order_id": terms.our_order_id}
    )
    return [release, hold]


def _shown(came: Sequence[DepositFact], last: DepositFact) -> list[ExpectedEffect]:
    """The last version always advances its deposit; an earlier one does where it did not come late."""
    return [
        ExpectedEffect(
            f"{fact.event_id}:{fact.shown.effect}", fact.shown.effect, certain=fact is last, payload=fact.shown.payload
        )
        for fact in came
        if fact.shown is not None
    ]
