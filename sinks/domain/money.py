"""The money rule: the five amounts of a deposit that moved money must agree with each other."""

from dataclasses import dataclass

from schemas.events import DepositObject
from sinks.domain.decision import Refusal

MONEY_STATUSES = ("settled", "reversed")

_AMOUNTS = (
    "ordered_amount_minor",
    "transferred_amount_minor",
    "amount_received_minor",
    "fee_total_minor",
    "credited_amount_minor",
)


@dataclass(frozen=True, slots=True)
class Money:
    """The amounts of a settled or reversed deposit, in satang; they hold the rule.

    Args:
        ordered: what the order was for.
        transferred: what the bank saw.
        received: what the user is credited with.
        fee: the gateway's fee.
        credited: what lands in the merchant's wallet.
    """

    ordered: int
    transferred: int
    received: int
    fee: int
    credited: int


def read_money(deposit: DepositObject) -> Money | Refusal:
    """The amounts of a deposit whose status is settled or reversed, or the rule that they break."""
    ordered, transferred = deposit.ordered_amount_minor, deposit.transferred_amount_minor
    received, fee, credited = deposit.amount_received_minor, deposit.fee_total_minor, deposit.credited_amount_minor
    if ordered is None or transferred is None or received is None or fee is None or credited is None:
        missing = ", ".join(name for name in _AMOUNTS if getattr(deposit, name) is None)
        return Refusal("money_rule", f"a deposit that is {deposit.status} lacks {missing}")
    money = Money(ordered, transferred, received, fee, credited)
    broken = _broken_rule(money)
    return money if broken is None else Refusal("money_rule", broken)


def _broken_rule(money: Money) -> str | None:
    ordered, transferred, received = money.ordered, money.transferred, money.received
    if ordered <= 0 or transferred <= 0 or received <= 0:
        return f"not all above 0: ordered {ordered}, transferred {transferred}, received {received}"
    if received != min(transferred, ordered):
        return f"received {received} is not the lesser of transferred {transferred} and ordered {ordered}"
    if not 0 <= money.fee <= received:
        return f"fee {money.fee} is not between 0 and received {received}"
    if received - money.fee != money.credited:
        return f"received {received} less fee {money.fee} is not credited {money.credited}"
    return None
