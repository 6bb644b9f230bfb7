"""What must come of stored events, whatever the object: verdicts, effects and lines of balances."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from tallyhook.operations.audit.stored_event import InboxEvent, Json


class _Doubt(Enum):
    """One value: what only an event knew that was pruned."""

    DOUBT = "not known: an event that was pruned knew it"

    def __repr__(self) -> str:
        return self.value


DOUBT: Final = _Doubt.DOUBT


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a user's balance (satang: credit above zero, debit below)."""

    key: str
    user_id: str
    amount_minor: int
    event_id: str


@dataclass(frozen=True, slots=True)
class ExpectedEffect:
    """An outbox row that must be there; a balance entry's payload lacks `balance_after_minor`.

    Args:
        payload: members that are DOUBT may have any value.
        certain: False where only a pruned event knew whether the effect had left before; then it may be missing.
    """

    aggregate_type: str
    topic: str
    payload: Json
    dedupe_key: str
    version: int
    cause: InboxEvent
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the event's verdict and reason must be."""

    event: InboxEvent
    verdict: str
    reason: str | None


@dataclass(slots=True)
class Outcome:
    """What was recomputed of the events of one object and one kind.

    Args:
        judgements: of the events that were applied.
        unreadable: applied events that had to be quarantined, and why.
        effects: in the order in which they must stand in the outbox.
    """

    judgements: list[Judgement] = field(default_factory=list)
    unreadable: list[tuple[InboxEvent, str]] = field(default_factory=list)
    effects: list[ExpectedEffect] = field(default_factory=list)


def judge_without_rules(events: list[InboxEvent]) -> Outcome:
    """Events of a kind that has no rules here: recorded, and nothing else."""
    outcome = Outcome()
    for event in events:
        if event.processed_at is not None:
            verdict = "immutable" if event.version is None else "advanced"
            outcome.judgements.append(Judgement(event, verdict, "no_handler"))
    return outcome
