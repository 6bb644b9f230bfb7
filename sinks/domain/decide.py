"""Which rules judge which kind of object; a kind without rules is recorded in the inbox and moves nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from schemas.events import (
    BALANCE_TRANSACTION_KIND,
    DEPOSIT_KIND,
    WITHDRAWAL_KIND,
    DepositEvent,
    TransactionEvent,
    WithdrawalEvent,
)
from schemas.reasons import Reason
from schemas.verdicts import SinkVerdict
from sinks.domain import deposits, transactions, withdrawals
from sinks.domain.decision import DepositDecision, DepositState, Refusal
from sinks.domain.withdrawal_state import (
    FactKeys,
    Facts,
    NotYet,
    Transaction,
    TransactionDecision,
    WithdrawalDecision,
    WithdrawalReading,
    WithdrawalState,
)

Event = TypeVar("Event")
State = TypeVar("State")
Decision = TypeVar("Decision")


@dataclass(frozen=True, slots=True)
class Handler(Generic[Event, State, Decision]):
    """The rules of one kind of object.

    Args:
        parse: bytes that have passed `read_text` to the typed event.
        check: whether the event may be kept at all, before anything else is asked.
        decide: what the event does to the object's state.
    """

    parse: Callable[[bytes], Event | Refusal]
    check: Callable[[Event], Refusal | None]
    decide: Callable[[State, Event], Decision | Refusal]


DepositHandler = Handler[DepositEvent, DepositState, DepositDecision]


@dataclass(frozen=True, slots=True)
class WithdrawalHandler:
    """The rules of withdrawals, which also keep facts.

    Args:
        parse: bytes that have passed `read_text` to the typed event.
        read: the event with its parts, or why it may not be kept at all.
        keys_of: the facts that `decide` asks for; None where it asks for none.
        can_build: whether the event suffices for the withdrawal's first row.
        decide: what the event does, on top of the withdrawal's state and the facts that are known.
    """

    parse: Callable[[bytes], WithdrawalEvent | Refusal]
    read: Callable[[WithdrawalEvent], WithdrawalReading | Refusal]
    keys_of: Callable[[WithdrawalReading], FactKeys | None]
    can_build: Callable[[WithdrawalReading], bool]
    decide: Callable[[WithdrawalState, WithdrawalReading, Facts], WithdrawalDecision | NotYet | Refusal]


@dataclass(frozen=True, slots=True)
class TransactionHandler:
    """The rules of balance transactions, which have no version.

    Args:
        parse: bytes that have passed `read_text` to the typed event.
        read: the transaction, or why it may not be kept.
        decide: whether it is to be kept, given the stored one of the same id.
    """

    parse: Callable[[bytes], TransactionEvent | Refusal]
    read: Callable[[TransactionEvent], Transaction | Refusal]
    decide: Callable[[Transaction | None, Transaction], TransactionDecision | Refusal]


AnyHandler = DepositHandler | WithdrawalHandler | TransactionHandler

DEPOSITS: DepositHandler = Handler(deposits.parse, deposits.check, deposits.decide)
WITHDRAWALS = WithdrawalHandler(
    withdrawals.parse, withdrawals.read, withdrawals.keys_of, withdrawals.can_build, withdrawals.decide
)
TRANSACTIONS = TransactionHandler(transactions.parse, transactions.read, transactions.decide)

_HANDLERS: Mapping[str, AnyHandler] = {
    DEPOSIT_KIND: DEPOSITS,
    WITHDRAWAL_KIND: WITHDRAWALS,
    BALANCE_TRANSACTION_KIND: TRANSACTIONS,
}


def handler_for(object_kind: str) -> AnyHandler | None:
    """The rules for `data.object.object`; None for a kind that has none."""
    return _HANDLERS.get(object_kind)


def verdict_without_rules(version: int | None) -> tuple[SinkVerdict, Reason]:
    """What is said of an event whose kind has no rules; `version` is its object's, None where it has none."""
    return ("immutable" if version is None else "advanced"), "no_handler"
