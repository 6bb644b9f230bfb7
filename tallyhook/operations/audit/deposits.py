"""What must come of a deposit's events: the gateway's example handler, one event after another, over nothing but these.

Written apart from the sink on purpose: where the two differ one is wrong, and money hangs on finding out which.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tallyhook.operations.audit.expected import Entry, ExpectedEffect, Judgement, Outcome
from tallyhook.operations.audit.stored_event import InboxEvent, Json, Unreadable, check_deposit, read


@dataclass(frozen=True, slots=True)
class SeenFlag:
    """An overpayment flag and the version of the deposit that first carried it."""

    version: int
    flag: Json


@dataclass(slots=True)
class Deposit:
    """A deposit's life so far.

    Args:
        order_id, user_id: to whom it belongs.
        earlier_pruned: older events may be missing, so that the version before the first kept one is not known.
        credit, reversed: what a pruned event or the handler before did; None and false when nothing was.
        version, snapshot: what was imported, to begin with.
    """

    id: str
    order_id: str
    user_id: str
    earlier_pruned: bool = False
    credit: Entry | None = None
    reversed: bool = False
    version: int | None = None
    snapshot: Json | None = None
    highest_seen: int = -1
    entries: list[Entry] = field(default_factory=list)
    flags: dict[str, SeenFlag] = field(default_factory=dict)
    outcome: Outcome = field(default_factory=Outcome)

    def apply_all(self, events: Iterable[InboxEvent]) -> None:
        """Applies events in the order of their arrival; parked ones are not applied yet."""
        for event in events:
            if event.processed_at is None:
                continue
            try:
                self._apply(event)
            except Unreadable as failure:
                self.outcome.unreadable.append((event, str(failure)))

    def _apply(self, event: InboxEvent) -> None:
        o: Json = read(event, self.id)["data"]["object"]
        check_deposit(o)
        if o["version"] != event.version:
            raise Unreadable(f"its row says version {event.version}, its bytes {o['version']}")
        version: int = o["version"]
        self.highest_seen = max(self.highest_seen, version)
        flag = o.get("overpayment")
        if flag is not None:
            self.flags.setdefault(flag["claim_id"], SeenFlag(version, flag))
        # Whether a pruned event was newer, only the row knew: the first event that advanced ends the doubt.
        doubtful = self.version is None and self.earlier_pruned and event.verdict == "late"
        if doubtful or (self.version is not None and version <= self.version):
            self.outcome.judgements.append(Judgement(event, "late", "older_version"))
            return
        self.version, self.snapshot = version, o
        self.outcome.judgements.append(Judgement(event, "advanced", self._act(event, o)))

    def _act(self, event: InboxEvent, o: Json) -> str | None:
        """The effects of an event that advanced, and the reason when there are fewer than its status suggests."""
        match o["status"]:
            case "settled":
                return self._settle(event, o)
            case "reversed":
                return self._reverse(event)
            case "expired" | "canceled":
                until, code = o.get("late_slip_accepted_until"), o.get("cancel_reason_code")
                if o.get("is_terminal") is False and until:
                    self._show(event, "show_late_slip", until=until)
                else:
                    self._show(event, "fail_order", reason="expired" if code is None else code)
            case "under_review":
                review = o.get("review")
                reasons = review.get("reasons") if isinstance(review, dict) else None
                first = reasons[0] if isinstance(reasons, list) and reasons else None
                self._show(event, "show_pending_review", message=_display_th(first))
            case "rejected":
                self._show(event, "fail_order", reason=_display_th(o.get("rejection")))
            case status:
                self._show(event, "update_order_status", status=status)
        return None

    def _settle(self, event: InboxEvent, o: Json) -> str | None:
        if self.credit is not None:
            return "already_credited"
        received = o["amount_received_minor"]
        self.credit = self._enter(event, "credit", self.user_id, received)
        goods = {"partial": o.get("partial") is True, "received": received, "ordered": o["ordered_amount_minor"]}
        self._effect(event, "release_goods", f"deposit:{self.id}:release_goods", goods)
        return None

    def _reverse(self, event: InboxEvent) -> str | None:
        if self.credit is None:
            return "never_credited"
        if self.reversed:
            return "already_reversed"
        self.reversed = True
        self._enter(event, "debit", self.credit.user_id, -self.credit.amount_minor)
        self._effect(event, "hold_goods", f"deposit:{self.id}:hold_goods", {})
        return None

    def _enter(self, event: InboxEvent, side: str, user_id: str, amount_minor: int) -> Entry:
        entry = Entry(f"deposit:{self.id}:{side}", user_id, amount_minor, event.event_id)
        self.entries.append(entry)
        payload = {
            "entry_key": entry.key,
            "user_id": user_id,
            "amount_minor": amount_minor,
            "pg_deposit_id": self.id,
            "our_order_id": self.order_id,
        }
        self.outcome.effects.append(
            ExpectedEffect("deposit", "balance_entry", payload, entry.key, self.version or 0, event)
        )
        return entry

    def _show(self, event: InboxEvent, topic: str, **members: object) -> None:
        self._effect(event, topic, f"{event.event_id}:{topic}", members)

    def _effect(self, event: InboxEvent, topic: str, dedupe_key: str, members: Json) -> None:
        payload = {"order_id": self.order_id} | members
        self.outcome.effects.append(ExpectedEffect("deposit", topic, payload, dedupe_key, self.version or 0, event))


def _display_th(texts: object) -> str | None:
    text = texts.get("display_th") if isinstance(texts, dict) else None
    return text if isinstance(text, str) else None
