"""Decides a batch: arrivals in order, on top of what was loaded; nothing is written here."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from schemas.effects import BALANCE_ENTRY
from schemas.events import DepositEvent
from schemas.headers import EventHeaders
from schemas.reasons import Reason
from schemas.verdicts import ParkedReason, SinkVerdict
from sinks.domain.decide import DepositHandler, verdict_without_rules
from sinks.domain.decision import (
    Correlation,
    DepositDecision,
    DepositState,
    FlagDraft,
    Refusal,
)
from sinks.domain.overpayment import same_flag
from sinks.plan import EntryRow, InboxRow, OutboxRow, Plan, Position, SetAside, copies
from sinks.quarantine import QuarantineWindow
from sinks.records import Arrival, Source

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Known:
    """An event of the inbox: the delivery that brought it, and what it was about."""

    source_partition: int
    source_offset: int
    object_id: str
    version: int | None


@dataclass(slots=True)
class Loaded:
    """What the database knows of a batch, read under the fence."""

    positions: Mapping[int, Position]
    seen: dict[str, Known] = field(default_factory=dict)
    deposits: dict[str, DepositState] = field(default_factory=dict)
    correlations: dict[str, Correlation] = field(default_factory=dict)
    flags: dict[str, FlagDraft] = field(default_factory=dict)
    parked: list[Arrival] = field(default_factory=list)
    set_aside_before: set[str] = field(default_factory=set)


class Overlay:
    """Takes arrivals one by one and gathers the plan.

    Args:
        loaded: what the database knows; changed as the batch goes on.
        max_payload_bytes: largest payload of an effect.
        window: how many were quarantined lately.
        forced: refusals by source for events that the database refused.
    """

    def __init__(
        self, loaded: Loaded, *, max_payload_bytes: int, window: QuarantineWindow, forced: Mapping[Source, Refusal]
    ) -> None:
        self.plan = Plan(copies(loaded.positions))
        self._loaded, self._forced = loaded, forced
        self._max_payload_bytes = max_payload_bytes
        self._window = window.copy()

    @property
    def window(self) -> QuarantineWindow:
        """The window after the arrivals taken so far; once it is exceeded, nothing more may be taken."""
        return self._window

    def take(self, arrival: Arrival) -> None:
        """Decides one arrival; what is behind the position was applied before and is passed over."""
        position = self.plan.positions[arrival.partition]
        if arrival.offset is not None:
            if arrival.offset < position.next_offset:
                return
            position.next_offset = arrival.offset + 1
        headers = arrival.headers
        if headers is None or arrival.foreign:
            self._set_aside(arrival, arrival.refusal or Refusal("record_headers", "the headers cannot be read"))
            return
        if arrival.arrival_seq is None:
            known = self._loaded.seen.get(headers.id)
            if known is not None:
                self._take_again(arrival, headers, known)
                return
        refusal = self._forced.get(arrival.source, arrival.refusal) or self._apply(arrival, headers)
        if refusal is not None:
            self._set_aside(arrival, refusal)

    def _take_again(self, arrival: Arrival, headers: EventHeaders, known: Known) -> None:
        if (known.object_id, known.version) != (headers.subject, headers.version):
            detail = f"event {headers.id} was seen for object {known.object_id} version {known.version}"
            self._set_aside(arrival, Refusal("event_id_collision", detail))
            return
        if (known.source_partition, known.source_offset) == (arrival.source.partition, arrival.source.offset):
            self.plan.replayed += 1
        else:
            self.plan.redeliveries.append(arrival)
        self._window.note(quarantined=False)

    def _apply(self, arrival: Arrival, headers: EventHeaders) -> Refusal | None:
        """Writes the arrival into the plan, or tells why it must be set aside; then the plan is unchanged."""
        if arrival.handler is None or arrival.event is None:
            verdict, reason = verdict_without_rules(headers.version)
            self._keep(arrival, headers, verdict, reason)
            return None
        state = self._state_of(headers.subject)
        if state is None:
            self._keep(arrival, headers, "parked", None, "correlation")
            return None
        decision = self._decide(arrival.handler, state, arrival.event)
        if isinstance(decision, Refusal):
            return decision
        payloads = [_encode(effect.payload) for effect in decision.effects]
        largest = max(map(len, payloads), default=0)
        if largest > self._max_payload_bytes:
            return Refusal("payload_too_large", f"{largest} bytes, the limit is {self._max_payload_bytes}")
        self._keep(arrival, headers, decision.verdict, decision.reason)
        self._move(arrival, headers, decision, payloads)
        return None

    def _decide(self, handler: DepositHandler, state: DepositState, event: DepositEvent) -> DepositDecision | Refusal:
        decision = handler.decide(state, event)
        if isinstance(decision, Refusal) or decision.flag is None:
            return decision
        stored = self._loaded.flags.get(decision.flag.flag.claim_id)
        if stored is not None and not same_flag(stored, decision.flag):
            return Refusal(
                "overpayment_collision",
                f"claim {stored.flag.claim_id} was seen with other content on {stored.pg_deposit_id}"
                f" version {stored.observed_deposit_version}",
            )
        return decision

    def _state_of(self, object_id: str) -> DepositState | None:
        state = self._loaded.deposits.get(object_id)
        if state is None and object_id in self._loaded.correlations:
            state = DepositState(object_id, self._loaded.correlations[object_id])
        return state

    def _keep(
        self,
        arrival: Arrival,
        headers: EventHeaders,
        verdict: SinkVerdict,
        reason: Reason | None,
        parked: ParkedReason | None = None,
    ) -> None:
        self._window.note(quarantined=False)
        if arrival.arrival_seq is not None:
            self.plan.finished.append(InboxRow(arrival, headers, arrival.arrival_seq, verdict, reason))
            return
        position = self.plan.positions[arrival.partition]
        self.plan.inbox.append(InboxRow(arrival, headers, position.next_arrival_seq, verdict, reason, parked))
        position.next_arrival_seq += 1
        self._loaded.seen[headers.id] = Known(
            arrival.source.partition, arrival.source.offset, headers.subject, headers.version
        )
        if headers.id in self._loaded.set_aside_before:
            self.plan.resolved.append((headers.id, headers.subject))

    def _move(self, arrival: Arrival, headers: EventHeaders, decision: DepositDecision, payloads: list[bytes]) -> None:
        state = decision.state
        self._loaded.deposits[state.pg_deposit_id] = state
        if state.snapshot is not None:
            self.plan.deposits[state.pg_deposit_id] = state
        self.plan.reversal_differs += decision.reversal_differs
        flag = decision.flag
        if flag is not None and flag.flag.claim_id not in self._loaded.flags:
            self._loaded.flags[flag.flag.claim_id] = self.plan.flags[flag.flag.claim_id] = flag
        for entry in decision.entries:
            row = EntryRow(entry, headers.id, state.pg_deposit_id, state.correlation.our_order_id)
            self.plan.entries.append(row)
            self._number(arrival, headers, BALANCE_ENTRY, row, entry.entry_key, headers.version or 0)
        for effect, payload in zip(decision.effects, payloads, strict=True):
            self._number(arrival, headers, effect.name, payload, effect.dedupe_key, effect.version)

    def _number(
        self, arrival: Arrival, headers: EventHeaders, name: str, payload: bytes | EntryRow, key: str, version: int
    ) -> None:
        position = self.plan.positions[arrival.partition]
        self.plan.outbox.append(OutboxRow(arrival, headers, position.next_outbox_seq, name, payload, key, version))
        position.next_outbox_seq += 1

    def _set_aside(self, arrival: Arrival, refusal: Refusal) -> None:
        self.plan.set_aside.append(SetAside(arrival, refusal))
        if arrival.arrival_seq is not None and arrival.headers is not None:
            self.plan.dropped.append(arrival.headers.id)
            # Its inbox row goes, so a copy in this very batch is judged anew, as it would be in the next one.
            self._loaded.seen.pop(arrival.headers.id, None)
        self._window.note(quarantined=True)
