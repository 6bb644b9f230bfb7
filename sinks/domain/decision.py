"""What the decision about one event is made of; the shell turns it into rows."""

from dataclasses import dataclass, field
from datetime import datetime

from schemas.effects import Effect, EffectName
from schemas.events import DepositEvent, Overpayment
from schemas.reasons import Reason
from schemas.verdicts import SinkVerdict


@dataclass(frozen=True, slots=True)
class Refusal:
    """The event itself is at fault: it is quarantined whole, with its bytes."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Correlation:
    """To whom a deposit belongs, as the merchant's own service said."""

    our_order_id: str
    our_user_id: str


@dataclass(frozen=True, slots=True)
class Credit:
    """The credit entry of a deposit: the debit repeats its user and amount (satang, above zero)."""

    user_id: str
    amount_minor: int


@dataclass(frozen=True, slots=True)
class DepositState:
    """What is known of one deposit.

    Args:
        correlation: its order and user.
        version: pg_version of the row; None when no row exists yet.
        snapshot: the event whose values the row is to take; None when the row stays as it is.
        credit: the credit entry, once there is one.
        reversed: whether the credit was taken back.
    """

    pg_deposit_id: str
    correlation: Correlation
    version: int | None = None
    snapshot: DepositEvent | None = None
    credit: Credit | None = None
    reversed: bool = False


@dataclass(frozen=True, slots=True)
class EffectDraft:
    """An effect to be put into the outbox.

    Args:
        name: the effect, which is also its topic.
        dedupe_key: one effect per key, for ever.
        version: the object's version it belongs to.
    """

    name: EffectName
    dedupe_key: str
    payload: Effect
    version: int


@dataclass(frozen=True, slots=True)
class EntryDraft:
    """A line of a user's balance: credit above zero, debit below (satang)."""

    entry_key: str
    user_id: str
    amount_minor: int


@dataclass(frozen=True, slots=True)
class FlagDraft:
    """An overpayment flag to be kept, first seen wins.

    Args:
        observed_deposit_version: the version of the deposit that carried it.
        slip_received_at: the flag's instant, in UTC, to the microsecond.
        expected_response_at: likewise, or None.
        raw: the flag's JSON as sent.
    """

    pg_deposit_id: str
    observed_deposit_version: int
    flag: Overpayment
    slip_received_at: datetime
    expected_response_at: datetime | None
    raw: bytes


@dataclass(frozen=True, slots=True)
class DepositDecision:
    """What one event does to one deposit.

    Args:
        state: the state after it.
        verdict: advanced or late.
        reason: why it has less effect than its status suggests; None when nothing is to be said.
        flag: the overpayment flag it carries, also when it is late.
        reversal_differs: the reversal's snapshot names another amount or user than the credit (counted and shown).
    """

    state: DepositState
    verdict: SinkVerdict
    reason: Reason | None = None
    effects: tuple[EffectDraft, ...] = ()
    entries: tuple[EntryDraft, ...] = ()
    flag: FlagDraft | None = None
    reversal_differs: bool = field(default=False)
