"""Decides a batch: arrivals in order, on top of what was loaded; nothing is written here."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from schemas.effects import BALANCE_ENTRY
from schemas.headers import EventHeaders
from schemas.reasons import Reason
from schemas.verdicts import ParkedReason, SinkVerdict
from sinks import deposit_overlay, withdrawal_overlay
from sinks.contents import DepositContent, TransactionContent, WithdrawalContent
from sinks.domain.decide import verdict_without_rules
from sinks.domain.decision import EffectDraft, Refusal
from sinks.domain.withdrawal_state import NotYet
from sinks.loaded import Known, Loaded
from sinks.plan import EntryRow, InboxRow, OutboxRow, Plan, SetAside, TransactionRow, copies
from sinks.quarantine import QuarantineWindow
from sinks.records import Arrival, Source

_encode = msgspec.json.Encoder().encode


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
        self._built: str | None = None
        self._cut: str | None = None

    @property
    def window(self) -> QuarantineWindow:
        """The window after the arrivals taken so far; once it is exceeded, nothing more may be taken."""
        return self._window

    @property
    def cut(self) -> str | None:
        """A withdrawal that was built and for which more events wait than were loaded: nothing more may be taken."""
        return self._cut

    def take(self, arrival: Arrival) -> None:
        """Decides one arrival; what is behind the position was applied before and is passed over."""
        position = self.plan.positions[arrival.partition]
        if arrival.offset is not None:
            if arrival.offset < position.next_offset:
                return
            position.next_offset = arrival.offset + 1
        headers = arrival.headers
        if headers is None or (arrival.foreign and arrival.arrival_seq is None):
            self._set_aside(arrival, arrival.refusal or Refusal("record_headers", "the headers cannot be read"))
            return
        if arrival.arrival_seq is None:
            known = self._loaded.seen.get(headers.id)
            if known is not None:
                self._take_again(arrival, headers, known)
                return
        self._judge(arrival, headers, waited=arrival.arrival_seq is not None)
        if self._built is not None:
            self._go_on_with_waiting(self._built)

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

    def _go_on_with_waiting(self, object_id: str) -> None:
        """Decides what waited for a withdrawal's row, in order of arrival, now that an event has built it."""
        self._built = None
        if object_id in self._loaded.left:
            self._cut = object_id
            return
        for arrival in self._loaded.waiting.pop(object_id, ()):
            if self._window.exceeded:
                return
            if arrival.headers is not None:
                self._judge(arrival, arrival.headers, waited=True)

    def _judge(self, arrival: Arrival, headers: EventHeaders, *, waited: bool) -> None:
        refusal = arrival.refusal
        if self._forced:
            refusal = self._forced.get(arrival.source, refusal)
        if refusal is None:
            refusal = self._apply(arrival, headers)
        if refusal is None:
            return
        self._set_aside(arrival, refusal)
        if waited:
            # Its inbox row goes, so a copy in this very batch is judged anew, as it would be in the next one.
            if self.plan.inbox.pop(headers.id, None) is None:
                self.plan.dropped.append(headers.id)
            self._loaded.seen.pop(headers.id, None)

    def _apply(self, arrival: Arrival, headers: EventHeaders) -> Refusal | None:
        """Writes the arrival into the plan, or tells why it must be set aside; then the plan is unchanged."""
        content = arrival.content
        if isinstance(content, DepositContent):
            return self._apply_deposit(arrival, headers, content)
        if isinstance(content, WithdrawalContent):
            return self._apply_withdrawal(arrival, headers, content)
        if isinstance(content, TransactionContent):
            return self._apply_transaction(arrival, headers, content)
        verdict, reason = verdict_without_rules(headers.version)
        self._keep(arrival, headers, verdict, reason)
        return None

    def _apply_deposit(self, arrival: Arrival, headers: EventHeaders, content: DepositContent) -> Refusal | None:
        state = deposit_overlay.state_of(self._loaded, headers.subject)
        if state is None:
            self._keep(arrival, headers, "parked", None, "correlation")
            return None
        decision = deposit_overlay.decide(self._loaded, state, content)
        if isinstance(decision, Refusal):
            return decision
        payloads = self._payloads(decision.effects)
        if isinstance(payloads, Refusal):
            return payloads
        self._keep(arrival, headers, decision.verdict, decision.reason)
        for row in deposit_overlay.move(self.plan, self._loaded, headers, decision):
            self._number(arrival, headers, BALANCE_ENTRY, row, row.draft.entry_key, headers.version or 0)
        self._number_all(arrival, headers, decision.effects, payloads)
        return None

    def _apply_withdrawal(self, arrival: Arrival, headers: EventHeaders, content: WithdrawalContent) -> Refusal | None:
        state = withdrawal_overlay.state_of(self._loaded, headers.subject)
        decision = content.handler.decide(state, content.reading, self._loaded.facts)
        if isinstance(decision, Refusal):
            return decision
        if isinstance(decision, NotYet):
            self._wait(arrival, headers)
            return None
        payloads = self._payloads(decision.effects)
        if isinstance(payloads, Refusal):
            return payloads
        self._keep(arrival, headers, decision.verdict, decision.reason)
        withdrawal_overlay.move(self.plan, self._loaded, state, decision)
        self._number_all(arrival, headers, decision.effects, payloads)
        if state.row is None:
            self._built = headers.subject
        return None

    def _apply_transaction(
        self, arrival: Arrival, headers: EventHeaders, content: TransactionContent
    ) -> Refusal | None:
        transaction = content.transaction
        decision = content.handler.decide(self._loaded.transactions.get(transaction.btxn_id), transaction)
        if isinstance(decision, Refusal):
            return decision
        self._keep(arrival, headers, "immutable", decision.reason)
        if decision.transaction is not None:
            self._loaded.transactions[transaction.btxn_id] = transaction
            self.plan.transactions[transaction.btxn_id] = TransactionRow(transaction, headers.merchant)
        return None

    def _wait(self, arrival: Arrival, headers: EventHeaders) -> None:
        """Parks an event that cannot build its row; one that was parked before goes on waiting as it is."""
        if arrival.arrival_seq is None:
            self._keep(arrival, headers, "parked", None, "snapshot")
        self._loaded.waiting.setdefault(headers.subject, []).append(arrival)

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
        here = self.plan.inbox.get(headers.id)
        if here is not None:
            # It was parked by this very batch: it keeps the number and the place of its arrival.
            self.plan.inbox[headers.id] = replace(here, verdict=verdict, reason=reason, parked=None)
            return
        position = self.plan.positions[arrival.partition]
        self.plan.inbox[headers.id] = InboxRow(arrival, headers, position.next_arrival_seq, verdict, reason, parked)
        position.next_arrival_seq += 1
        self._loaded.seen[headers.id] = Known(
            arrival.source.partition, arrival.source.offset, headers.subject, headers.version
        )
        if headers.id in self._loaded.set_aside_before:
            self.plan.resolved.append((headers.id, headers.subject))
        self.plan.close_set_aside(headers)

    def _payloads(self, effects: Sequence[EffectDraft]) -> list[bytes] | Refusal:
        payloads = [_encode(effect.payload) for effect in effects]
        for payload in payloads:
            if len(payload) > self._max_payload_bytes:
                return Refusal("payload_too_large", f"{len(payload)} bytes, the limit is {self._max_payload_bytes}")
        return payloads

    def _number_all(
        self, arrival: Arrival, headers: EventHeaders, effects: Sequence[EffectDraft], payloads: Sequence[bytes]
    ) -> None:
        for effect, payload in zip(effects, payloads, strict=True):
            self._number(arrival, headers, effect.name, payload, effect.dedupe_key, effect.version)

    def _number(
        self, arrival: Arrival, headers: EventHeaders, name: str, payload: bytes | EntryRow, key: str, version: int
    ) -> None:
        position = self.plan.positions[arrival.partition]
        self.plan.outbox.append(OutboxRow(arrival, headers, position.next_outbox_seq, name, payload, key, version))
        position.next_outbox_seq += 1

    def _set_aside(self, arrival: Arrival, refusal: Refusal) -> None:
        self.plan.set_aside.append(SetAside(arrival, refusal))
        self._window.note(quarantined=True)
