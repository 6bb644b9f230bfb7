"""Which rules judge which kind of object; a kind without rules is recorded in the inbox and moves nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from schemas.events import DEPOSIT_KIND, DepositEvent
from schemas.reasons import Reason
from schemas.verdicts import SinkVerdict
from sinks.domain import deposits
from sinks.domain.decision import DepositDecision, DepositState, Refusal

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

DEPOSITS: DepositHandler = Handler(deposits.parse, deposits.check, deposits.decide)
_HANDLERS: Mapping[str, DepositHandler] = {DEPOSIT_KIND: DEPOSITS}


def handler_for(object_kind: str) -> DepositHandler | None:
    """The rules for `data.object.object`; None for a kind that has none."""
    return _HANDLERS.get(object_kind)


def verdict_without_rules(version: int | None) -> tuple[SinkVerdict, Reason]:
    """What is said of an event whose kind has no rules; `version` is its object's, None where it has none."""
    return ("immutable" if version is None else "advanced"), "no_handler"
