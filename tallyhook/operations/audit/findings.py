"""What the audit asks, and what it found: one `Check` a question, each with its first counterexamples."""

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

EXAMPLES_MAX = 20
"""Counterexamples that are kept a check; the others are only counted."""

CheckName = Literal[
    "events",
    "deliveries",
    "arrival_numbers",
    "outbox_numbers",
    "aggregates",
    "flags",
    "chunks",
    "transactions",
    "verdicts",
    "ledger",
    "outbox",
    "effects",
]
CHECKS: tuple[CheckName, ...] = get_args(CheckName)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a check asks, and what is in danger when the answer is no."""

    question: str
    endangers: str


MEANINGS: dict[CheckName, Meaning] = {
    "events": Meaning(
        "Every event that the stream has committed is in state-changes or in dead-letters.",
        "P1 no loss: an event that was answered 200 would never be applied",
    ),
    "deliveries": Meaning(
        "Every state change that the sink has passed is in the inbox with its bytes, noted as a redelivery, or"
        " quarantined; every dead letter that it has passed is quarantined.",
        "P1 no loss: an event that was answered 200 would never be applied",
    ),
    "arrival_numbers": Meaning(
        "The inbox has every arrival number of each partition, once, and each object in one partition.",
        "P1 no loss: an inbox row was deleted, or a number skipped",
    ),
    "outbox_numbers": Meaning(
        "The outbox has every number of each partition, once.",
        "P1 no loss: an effect was deleted, or the relay will stop at the gap",
    ),
    "aggregates": Meaning(
        "Every deposit's and every withdrawal's row has the values of the highest version applied, and the marks of"
        " what was done once.",
        "P3 no regression: an order would be shown or treated in an older state",
    ),
    "flags": Meaning(
        "Every overpayment flag of an applied event is kept as it was first seen.",
        "P4 facts survive: a customer's claim would be lost or changed",
    ),
    "chunks": Meaning(
        "Every chunk of a withdrawal and every reversal of one that an applied event carried is kept as it was first"
        " seen, and no others are.",
        "P4 facts survive: a user's payout would be shown wrongly, or a recalled one not compensated",
    ),
    "transactions": Meaning(
        "Every balance transaction of an applied event is kept as it was first seen, and no others are.",
        "P4 facts survive: the books would not agree with the gateway's",
    ),
    "verdicts": Meaning(
        "Every applied event has the verdict and the reason that its version and its object's life give it.",
        "P7 explainable: support would tell another story than what happened",
    ),
    "ledger": Meaning(
        "Each deposit has the credit and the debit that its events give, at most one of each, the debit repeats the"
        " credit, and each balance is the sum of its entries, step by step.",
        "P2 no double: a user would have more or less money than is due",
    ),
    "outbox": Meaning(
        "The outbox has each effect that the events give, once, in order, and nothing else.",
        "P2 no double: goods released, a withdrawal refunded or a credit announced twice, or never",
    ),
    "effects": Meaning(
        "Every outbox row that counts as sent is in its topic once, with its key, payload and version, and every"
        " record there is such a row.",
        "P2 no double: a downstream service would act twice, or never",
    ),
}


@dataclass(frozen=True, slots=True)
class Example:
    """One counterexample: a sentence, and the ids that it names."""

    text: str
    ids: dict[str, str | int]


@dataclass(slots=True)
class Check:
    """The answer to one question.

    Args:
        looked_at: how many records or rows were held against each other.
        found: how many counterexamples there are.
        examples: the first of them, at most EXAMPLES_MAX.
        left_out: what was not judged, because it was pruned, cut by retention or not asked for, and how much of it.
    """

    name: CheckName
    looked_at: int = 0
    found: int = 0
    examples: list[Example] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def meaning(self) -> Meaning:
        """Question and danger in words."""
        return MEANINGS[self.name]

    def fail(self, text: str, **ids: str | int) -> None:
        """Notes a counterexample."""
        self.found += 1
        if len(self.examples) < EXAMPLES_MAX:
            self.examples.append(Example(text, ids))

    def leave_out(self, what: str, how_many: int = 1) -> None:
        """Names what is not judged; `what` must come from a bounded set of sentences."""
        if how_many > 0:
            self.left_out[what] = self.left_out.get(what, 0) + how_many


class Checks(dict[CheckName, Check]):
    """All checks by name, in the order in which they are shown."""

    def __init__(self) -> None:
        super().__init__((name, Check(name)) for name in CHECKS)

    @property
    def found(self) -> int:
        """How many counterexamples there are in all."""
        return sum(check.found for check in self.values())

    def add(self, others: "Checks") -> None:
        """Takes over what other checks found."""
        for name, other in others.items():
            check = self[name]
            check.looked_at += other.looked_at
            check.found += other.found
            check.examples += other.examples[: EXAMPLES_MAX - len(check.examples)]
            for what, how_many in other.left_out.items():
                check.leave_out(what, how_many)


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit saw.

    Args:
        snapshot_at: the moment of the database's snapshot, by its clock.
        checks: in the order of `CHECKS`.
        since: only what was received or changed since then was asked for; None for everything.
    """

    snapshot_at: datetime
    checks: list[Check]
    since: datetime | None = None

    @property
    def clean(self) -> bool:
        """Whether there is no counterexample to any promise."""
        return not any(check.found for check in self.checks)

    @property
    def red(self) -> list[CheckName]:
        """The checks that have a counterexample."""
        return [check.name for check in self.checks if check.found]

    def as_json(self) -> dict[str, Any]:
        """As `tallyhook audit --json` prints it."""
        return {
            "clean": self.clean,
            "snapshot_at": self.snapshot_at,
            "since": self.since,
            "checks": [asdict(check) | asdict(check.meaning) for check in self.checks],
        }
