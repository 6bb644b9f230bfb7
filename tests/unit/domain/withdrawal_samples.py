"""Withdrawal events for tests: bytes as the gateway sends them, and a memory that applies them as the sink does."""

import json
from dataclasses import dataclass, field, replace

from schemas.events import WithdrawalEvent
from sinks.domain import withdrawals
from sinks.domain.decision import EffectDraft, Refusal
from sinks.domain.withdrawal_state import (
    Fill,
    NotYet,
    Tombstone,
    Withdrawal,
    WithdrawalDecision,
    WithdrawalReading,
    WithdrawalState,
)

Json = dict[str, object]

WITHDRAWAL_ID = "wdr_7"
TICKET = "WD-7"
LEG = "leg_1"

SIBLINGS = ("fill", "reversal", "replacement_withdrawal_id")

TOTALS: Json = {
    "merchant_reference": TICKET,
    "amount_total_minor": 100_000,
    "fee_total_minor": 2_675,
    "total_locked_minor": 102_675,
    "filled_minor": 30_000,
    "remaining_minor": 70_000,
    "refunded_minor": 0,
    "fee_recognized_minor": 802,
    "settled_splits": 1,
    "max_splits": 4,
}

FILL: Json = {
    "leg_ref": LEG,
    "sequence": 1,
    "amount_minor": 30_000,
    "fee_recognized_minor": 802,
    "settled_at": "2026-08-21T03:19:47.903Z",
    "balance_transaction_id": "btxn_fill_1",
    "auto_confirm_at": "2026-08-21T06:19:47.903Z",
}

REVERSAL: Json = {
    "reason_code": "BANK_RECALL",
    "reverses_balance_transaction_id": "btxn_fill_1",
    "balance_transaction_id": "btxn_back_1",
}


def body(version: int, status: str, type_: str = "withdrawal.updated", /, **members: object) -> bytes:
    """A withdrawal event as bytes.

    Args:
        members: `event_id`, `created_at`, `object_id` and siblings of `data.object` (`fill`, `reversal`,
            `replacement_withdrawal_id`) go where they belong, all else into `data.object`.
    """
    siblings: Json = {name: members.pop(name) for name in SIBLINGS if name in members}
    event = {
        "id": members.pop("event_id", f"evt_{version}"),
        "object": "event",
        "type": type_,
        "api_version": "2026-08-01",
        "livemode": True,
        "created_at": members.pop("created_at", "2026-08-21T03:19:47.985Z"),
        "sequence": 91_018,
        "account": {"merchant_id": "mch_1", "white_label_id": None},
        "data": {
            "object": {
                "id": members.pop("object_id", WITHDRAWAL_ID),
                "object": "withdrawal_order",
                "version": version,
                "status": status,
                **members,
            },
            **siblings,
        },
    }
    return json.dumps(event, ensure_ascii=False).encode()


def sparse(version: int, status: str, type_: str = "withdrawal.matched", /, **members: object) -> WithdrawalReading:
    """An event with nothing but the given members."""
    return reading(body(version, status, type_, **members))


def whole(version: int, status: str, type_: str = "withdrawal.updated", /, **members: object) -> WithdrawalReading:
    """An event with every total."""
    return sparse(version, status, type_, **{**TOTALS, **members})


def filled(version: int, status: str = "partially_filled", /, **members: object) -> WithdrawalReading:
    """A `withdrawal.filled`; members that start with `fill_` change the fill, all else the order."""
    changes = {name[5:]: members.pop(name) for name in list(members) if name.startswith("fill_")}
    return whole(version, status, "withdrawal.filled", fill={**FILL, **changes}, **members)


def taken_back(version: int, status: str = "partially_filled", /, **members: object) -> WithdrawalReading:
    """A `withdrawal.fill_reversed`; members that start with `fill_` or `reversal_` change these, all else the order."""
    changes = {name[5:]: members.pop(name) for name in list(members) if name.startswith("fill_")}
    fill = {name: FILL[name] for name in ("leg_ref", "amount_minor", "balance_transaction_id")} | changes
    changes = {name[9:]: members.pop(name) for name in list(members) if name.startswith("reversal_")}
    return whole(version, status, "withdrawal.fill_reversed", fill=fill, reversal={**REVERSAL, **changes}, **members)


def event(raw: bytes) -> WithdrawalEvent:
    """The typed event; fails where its shape is refused."""
    parsed = withdrawals.parse(raw)
    assert isinstance(parsed, WithdrawalEvent), parsed
    return parsed


def reading(raw: bytes) -> WithdrawalReading:
    """The event, read; fails where it is refused."""
    found = withdrawals.read(event(raw))
    assert isinstance(found, WithdrawalReading), found
    return found


def refused(raw: bytes) -> Refusal:
    """Why the bytes may not be kept; fails where they may."""
    parsed = withdrawals.parse(raw)
    found = parsed if isinstance(parsed, Refusal) else withdrawals.read(parsed)
    assert isinstance(found, Refusal), found
    return found


@dataclass
class Facts:
    """Chunks and reversals in memory."""

    fills: dict[str, Fill] = field(default_factory=dict)
    tombstones: dict[str, Tombstone] = field(default_factory=dict)

    def fill(self, leg_ref: str) -> Fill | None:
        """The chunk of that name."""
        return self.fills.get(leg_ref)

    def tombstone(self, leg_ref: str) -> Tombstone | None:
        """The reversal of that chunk."""
        return self.tombstones.get(leg_ref)

    def tombstone_of(self, transaction_id: str) -> Tombstone | None:
        """The reversal that names the transaction."""
        for tombstone in self.tombstones.values():
            if transaction_id in (tombstone.reverses_balance_transaction_id, tombstone.reversal_balance_transaction_id):
                return tombstone
        return None


@dataclass
class Ledger:
    """One withdrawal and the facts of all; takes events one by one and refuses what the tables would refuse."""

    state: WithdrawalState = field(default_factory=lambda: WithdrawalState(WITHDRAWAL_ID))
    facts: Facts = field(default_factory=Facts)
    waiting: list[WithdrawalReading] = field(default_factory=list)
    effects: list[EffectDraft] = field(default_factory=list)

    @property
    def row(self) -> Withdrawal:
        """The row; fails where there is none."""
        assert self.state.row is not None
        return self.state.row

    def judge(self, given: WithdrawalReading) -> WithdrawalDecision | NotYet | Refusal:
        """What is said of an event, which is not applied yet."""
        return withdrawals.decide(self.state, given, self.facts)

    def take(self, given: WithdrawalReading) -> WithdrawalDecision:
        """Applies an event; fails where it is refused or must wait."""
        decision = self.judge(given)
        assert isinstance(decision, WithdrawalDecision), decision
        self._apply(decision)
        return decision

    def arrive(self, given: WithdrawalReading) -> None:
        """Takes an event or lets it wait; the one that builds the row is followed by those that waited."""
        if isinstance(self.judge(given), NotYet):
            self.waiting.append(given)
            return
        self.take(given)
        while self.waiting:
            self.take(self.waiting.pop(0))

    def refusal(self, given: WithdrawalReading) -> Refusal:
        """Why an event is refused; fails where it is not."""
        decision = self.judge(given)
        assert isinstance(decision, Refusal), decision
        return decision

    def _apply(self, decision: WithdrawalDecision) -> None:
        fills, tombstones, kept = self.facts.fills, self.facts.tombstones, decision.fill
        if kept is not None:
            assert kept.leg_ref not in fills
            fills[kept.leg_ref] = kept
        if decision.tombstone is not None:
            assert decision.tombstone.leg_ref not in tombstones
            tombstones[decision.tombstone.leg_ref] = decision.tombstone
        if decision.fill_reversed is not None:
            leg_ref, reversed_at = decision.fill_reversed
            assert fills[leg_ref].reversed_at is None
            fills[leg_ref] = replace(fills[leg_ref], reversed_at=reversed_at)
        self.state = decision.state
        self.effects += decision.effects


def at(row: Withdrawal, *, settled_tombstone: bool = False) -> Ledger:
    """A withdrawal whose row is known, and nothing of its chunks."""
    return Ledger(WithdrawalState(row.pg_withdrawal_id, row, settled_tombstone))


ROW = Withdrawal(
    pg_withdrawal_id=WITHDRAWAL_ID,
    pg_version=5,
    status="partially_filled",
    amount_total_minor=100_000,
    remaining_minor=70_000,
    filled_minor=30_000,
    fee_total_minor=2_675,
    total_locked_minor=102_675,
    refunded_minor=0,
    fee_recognized_minor=802,
    settled_splits=1,
    max_splits=4,
    our_ref=TICKET,
)
"""What `whole(5, "partially_filled")` makes."""
