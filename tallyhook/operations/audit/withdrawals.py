"""What must come of a withdrawal's events: the gateway's handler for partial fills, over nothing but these.

Written apart from the sink on purpose, as the rules of deposits are.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from tallyhook.operations.audit.expected import DOUBT, ExpectedEffect, Judgement, Outcome
from tallyhook.operations.audit.stored_event import InboxEvent, Json, Unreadable
from tallyhook.operations.audit.withdrawal_events import Fill, Reading, Tombstone, read_withdrawal

Row = dict[str, Any]
"""Columns of pg_withdrawals by name, marks as present or absent; a value may be DOUBT."""

OVERWRITTEN = ("filled_minor", "remaining_minor", "refunded_minor", "fee_recognized_minor", "settled_splits")
SET_ONCE = ("fee_total_minor", "total_locked_minor", "max_splits")
MARKS = ("closed", "close_enqueued", "refund_enqueued", "lock_released")
COLUMNS = (
    *("pg_version", "status", "amount_total_minor", *SET_ONCE, *OVERWRITTEN),
    *("our_ref", "replacement_withdrawal_id", *MARKS),
)
ENDED = ("expired", "canceled", "rejected")
BIGINT_MAX = (1 << 63) - 1


def doubtful_row() -> Row:
    """The row before the first event that is kept, where earlier ones may have been pruned."""
    return dict.fromkeys(COLUMNS, DOUBT)


@dataclass(frozen=True, slots=True)
class Facts:
    """Chunks and reversals by leg_ref."""

    fills: dict[str, Fill]
    tombstones: dict[str, Tombstone]


@dataclass(slots=True)
class Withdrawal:
    """A withdrawal's life so far.

    Args:
        row: what was imported, or `doubtful_row()`; None where the events begin its life.
        fills, tombstones: what was imported, by leg_ref.
        unseen: what pruned events have left, which came before the first of these events that finds or builds the row
            or, if they had waited for it, right after this one; None where none was pruned.
    """

    id: str
    row: Row | None = None
    fills: dict[str, Fill] = field(default_factory=dict)
    tombstones: dict[str, Tombstone] = field(default_factory=dict)
    unseen: Facts | None = None
    highest_seen: int = -1
    outcome: Outcome = field(default_factory=Outcome)

    def apply_all(self, events: Iterable[InboxEvent]) -> None:
        """Applies events in the order in which they were: that of their arrival, save that those that came before the
        first which could build the row follow this one. Parked ones are not applied yet."""
        waiting: list[Reading] = []
        if self.row is not None:
            self._doubt()
        for event in events:
            try:
                reading = read_withdrawal(event, self.id)
            except Unreadable as failure:
                self.outcome.unreadable.append((event, str(failure)))
                continue
            if event.processed_at is None:
                if self.row is None and reading.can_build:
                    self.outcome.unreadable.append((event, "it waits for a snapshot, and brings one that suffices"))
            elif self.row is None and not reading.can_build:
                waiting.append(reading)
            else:
                self._take(reading)
                if self.row is not None and (waiting or self.unseen is not None):
                    self._doubt()
                    for earlier in waiting:
                        self._take(earlier)
                    waiting.clear()
        for reading in waiting:
            self.outcome.unreadable.append((reading.event, "nothing had built the row that it needs"))

    def _doubt(self) -> None:
        """Here pruned events were applied: whatever may change is not known any more."""
        unseen, self.unseen = self.unseen, None
        if unseen is None or self.row is None:
            return
        once = {name: self.row[name] for name in (*SET_ONCE, "our_ref", "amount_total_minor")}
        self.row = doubtful_row() | {name: value for name, value in once.items() if value is not None}
        self.tombstones = unseen.tombstones | self.tombstones
        self.fills = unseen.fills | {
            leg_ref: _marked(fill, self.tombstones.get(leg_ref)) for leg_ref, fill in self.fills.items()
        }

    def _take(self, reading: Reading) -> None:
        try:
            self._apply(reading)
        except Unreadable as failure:
            self.outcome.unreadable.append((reading.event, str(failure)))

    def _apply(self, reading: Reading) -> None:
        event = reading.event
        row, advanced = self._move(reading)
        if reading.tombstone is not None:
            reason, effects = self._take_back(reading, reading.tombstone, row, advanced=advanced)
        else:
            appended = reading.fill is not None and self._keep_fill(reading.fill)
            reason, effects = "late_fact" if appended else "older_version", []
            if advanced:
                reason, effects = self._tell(reading, row)
        self.row = row
        self.highest_seen = max(self.highest_seen, reading.version)
        self.outcome.judgements.append(Judgement(event, "advanced" if advanced else "late", reason))
        self.outcome.effects += effects

    def _move(self, reading: Reading) -> tuple[Row, bool]:
        """The row after the snapshot, and whether its version was above the row's."""
        o, row = reading.o, self.row
        told = {name: o.get(name) for name in (*OVERWRITTEN, *SET_ONCE)} | {"our_ref": reading.our_ref}
        if row is None:
            row = dict.fromkeys(MARKS, False) | told
            row |= {"amount_total_minor": o["amount_total_minor"], "replacement_withdrawal_id": None}
            if row["filled_minor"] is None:
                row["filled_minor"] = 0
            return row | {"pg_version": reading.version, "status": o["status"]}, True
        row = dict(row)
        for name in (*SET_ONCE, "our_ref"):
            if row[name] is None:
                row[name] = told[name]
        # Whether a pruned event was newer, only the row knew: the first event that advanced ends the doubt.
        known = row["pg_version"]
        advanced = reading.event.verdict != "late" if known is DOUBT else reading.version > known
        if advanced:
            row |= {name: told[name] for name in OVERWRITTEN if told[name] is not None}
            row |= {"pg_version": reading.version, "status": o["status"]}
        return row, advanced

    def _keep_fill(self, fill: Fill) -> bool:
        """Whether the chunk is new; raises Unreadable where it, or its reversal, is known otherwise."""
        stored, tombstone = self.fills.get(fill.leg_ref), self.tombstones.get(fill.leg_ref)
        if stored is not None and replace(stored, reversed_at=None) != fill:
            raise Unreadable(f"chunk {fill.leg_ref} is known with other content")
        if tombstone is not None and _contradict(fill, tombstone):
            raise Unreadable(f"chunk {fill.leg_ref} was taken back with other content")
        if stored is None:
            self.fills[fill.leg_ref] = _marked(fill, tombstone)
        return stored is None

    def _take_back(
        self, reading: Reading, tombstone: Tombstone, row: Row, *, advanced: bool
    ) -> tuple[str | None, list[ExpectedEffect]]:
        """Keeps the reversal and opens the order; raises Unreadable where it contradicts what is known."""
        leg_ref, fill = tombstone.leg_ref, self.fills.get(tombstone.leg_ref)
        stored = self.tombstones.get(leg_ref)
        if stored is not None and _content(stored) != _content(tombstone):
            raise Unreadable(f"the reversal of chunk {leg_ref} is known with other content")
        named = _transactions(tombstone)
        for other in self.tombstones.values():
            if other.leg_ref != leg_ref and named & _transactions(other):
                raise Unreadable(f"a transaction of it belongs to the reversal of chunk {other.leg_ref}")
        if fill is not None and _contradict(fill, tombstone):
            raise Unreadable(f"chunk {leg_ref} was paid out with other content")
        row["closed"] = False
        if tombstone.replacement_withdrawal_id is not None:
            row["replacement_withdrawal_id"] = tombstone.replacement_withdrawal_id
        effects = []
        if stored is None:
            payload = {name: getattr(tombstone, name) for name in _COMPENSATION} | {"withdrawal_id": self.id}
            key = f"withdrawal-fill:{leg_ref}:reverse:compensate_reversed_fill"
            effects.append(self._effect(reading, "compensate_reversed_fill", key, payload))
        reason: str | None = "older_version" if stored is not None else "late_fact"
        if advanced:
            reason, ended = self._end(reading, row, told=stored is None)
            effects += ended
            reason = reason if stored is None else "already_compensated"
        self.tombstones.setdefault(leg_ref, tombstone)
        if fill is not None and fill.reversed_at is None:
            self.fills[leg_ref] = _marked(fill, tombstone)
        return reason, effects

    def _tell(self, reading: Reading, row: Row) -> tuple[str | None, list[ExpectedEffect]]:
        """The effects of an event that advanced, and the reason when there are fewer than its status suggests."""
        ticket, own = row["our_ref"], reading.event.event_id
        if row["status"] in ENDED:
            return self._end(reading, row, told=True)
        match row["status"]:
            case "partially_filled":
                payload = {name: row[name] for name in ("filled_minor", "amount_total_minor")} | {"ticket": ticket}
                return None, [self._effect(reading, "show_progress", f"{own}:show_progress", payload)]
            case "settled":
                return self._close(reading, row)
            case status:
                payload = {"ticket": ticket, "status": status}
                return None, [self._effect(reading, "update_local_status", f"{own}:update_local_status", payload)]

    def _close(self, reading: Reading, row: Row) -> tuple[str | None, list[ExpectedEffect]]:
        noted, remaining = reading.event.reason, row["remaining_minor"]
        if (noted == "not_all_filled") if remaining is DOUBT else remaining != 0:
            return "not_all_filled", []
        if any(tombstone.status_snapshot == "settled" for tombstone in self.tombstones.values()):
            return "reversed_after_settlement", []
        closed, left = row["closed"], row["close_enqueued"]
        if left is DOUBT:
            left = noted == "already_closed"
        row |= {"closed": True, "close_enqueued": True}
        if closed is True or left:
            return "already_closed", []
        return None, [self._once(reading, row, "close_withdrawal")]

    def _end(self, reading: Reading, row: Row, *, told: bool) -> tuple[str | None, list[ExpectedEffect]]:
        """What an order that ended gives back, once in its life; nothing for other statuses.

        Args:
            told: the event's reason tells whether it was given back before.
        """
        if row["status"] not in ENDED:
            return None, []
        released = row["status"] == "rejected"
        mark, already = ("lock_released", "already_released") if released else ("refund_enqueued", "already_refunded")
        before = row[mark]
        certain = told or before is not DOUBT
        if before is DOUBT:
            before = told and reading.event.reason == already
        row[mark] = True
        if before:
            return already, []
        effect = self._once(reading, row, "release_user_lock") if released else self._refund(reading, row)
        return None, [replace(effect, certain=certain)]

    def _refund(self, reading: Reading, row: Row) -> ExpectedEffect:
        recognized, unused = row["fee_recognized_minor"], _add(row["fee_total_minor"], row["fee_recognized_minor"], -1)
        return self._once(
            reading,
            row,
            "refund_unfilled",
            refunded_minor=row["refunded_minor"],
            fee_unused_minor=unused,
            release_minor=_add(row["refunded_minor"], unused),
            debited_minor=_add(row["filled_minor"], recognized),
        )

    def _once(self, reading: Reading, row: Row, topic: str, **members: object) -> ExpectedEffect:
        payload = {"withdrawal_id": self.id, "ticket": row["our_ref"]} | members
        return self._effect(reading, topic, f"withdrawal:{self.id}:{topic}", payload)

    def _effect(self, reading: Reading, topic: str, dedupe_key: str, payload: Json) -> ExpectedEffect:
        return ExpectedEffect("withdrawal", topic, payload, dedupe_key, reading.version, reading.event)


_COMPENSATION = (
    *("leg_ref", "amount_minor", "reason_code", "reverses_balance_transaction_id"),
    *("reversal_balance_transaction_id", "replacement_withdrawal_id"),
)


def _content(tombstone: Tombstone) -> tuple[object, ...]:
    """What two observations of one reversal must agree on."""
    return tuple(getattr(tombstone, name) for name in _COMPENSATION)


def _transactions(tombstone: Tombstone) -> set[str]:
    return {tombstone.reverses_balance_transaction_id, tombstone.reversal_balance_transaction_id}


def _marked(fill: Fill, tombstone: Tombstone | None) -> Fill:
    return fill if tombstone is None else replace(fill, reversed_at=tombstone.reversed_at)


def _contradict(fill: Fill, tombstone: Tombstone) -> bool:
    names = (None, tombstone.reverses_balance_transaction_id)
    return fill.amount_minor != tombstone.amount_minor or fill.balance_transaction_id not in names


def _add(one: Any, other: Any, sign: int = 1) -> Any:
    """A sum (satang); null where a part is, in doubt where a part is. Raises Unreadable beyond bigint."""
    if one is None or other is None:
        return None
    if one is DOUBT or other is DOUBT:
        return DOUBT
    found: int = one + sign * other
    if not -BIGINT_MAX - 1 <= found <= BIGINT_MAX:
        raise Unreadable(f"its amounts add up to {found}, beyond bigint")
    return found
