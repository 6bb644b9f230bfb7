"""A deposit order: its snapshots are whole, so that a member which is absent from one is known to be nothing."""

from datetime import datetime, timedelta

from tallyhook.gateway.world.facts import Amounts, Claim, DepositFact, DepositTerms, Shown
from tallyhook.gateway.world.model import Correlation
from tallyhook.gateway.world.story import Json, Story, iso
from tallyhook.gateway.world.wallet import DEPOSIT_KIND, clear_at, move

LATE_SLIP = timedelta(hours=24)
"""How long an expired deposit still takes a slip."""
FEE_BASIS_POINTS = 150
CLEARING = (timedelta(hours=4), timedelta(hours=30))


class DepositOrder:
    """One deposit while its life is told.

    Args:
        story: where it is told.
        ordered_minor: what the order is for, in satang.
        correlated: whether the merchant's service writes to whom it belongs; if not, its events stay parked.
        first_version: the version of the first snapshot.
    """

    def __init__(self, story: Story, ordered_minor: int, *, correlated: bool = True, first_version: int = 1) -> None:
        names, rng = story.names, story.rng
        self.id = names.deposit()
        self.ordered_minor = ordered_minor
        self.order_id, self.user_id = names.ours("ord_"), rng.choice(story.users)
        self.reference = names.ours("PO-")
        self._story = story
        self._version = first_version - 1
        self._status = ""
        self._created_at = story.at
        self._amounts = Amounts(ordered=ordered_minor)
        self._claim: Claim | None = None
        self._flag: Json | None = None
        self._kept: Json = {}
        """Members that stay in every snapshot once they are there."""
        if story.livemode:
            story.told.deposit_terms.append(DepositTerms(self.id, self.order_id, self.user_id, correlated))
            written_at = self._correlated_at() if correlated else None
            story.told.correlations.append(
                Correlation(self.id, self.reference, self.order_id, self.user_id, written_at)
            )

    @property
    def received_minor(self) -> int:
        """What the user is credited with, in satang; 0 before it has settled."""
        return self._amounts.received or 0

    def open(self) -> None:
        """The order was made and waits for a transfer."""
        self.show("created", "open")

    def slip(self) -> None:
        """The payer handed in a slip."""
        self.show("slip_received", "slip_received")

    def review(self, display_th: str | None) -> None:
        """A person looks at it; `display_th` is what the user may read, None where no reason is given."""
        reasons = [] if display_th is None else [{"code": "NAME", "display_th": display_th, "display_en": "Checking"}]
        effect = Shown("show_pending_review", {"order_id": self.order_id, "message": display_th})
        self._tell("under_review", "under_review", {"review": {"reasons": reasons}}, effect)

    def reject(self, display_th: str | None) -> None:
        """The end: the transfer is not accepted."""
        members: Json = {"is_terminal": True}
        if display_th is not None:
            members["rejection"] = {"code": "SLIP", "display_th": display_th, "display_en": "Rejected"}
        self._tell("rejected", "rejected", members, self._fails(display_th))

    def expire_for_now(self) -> None:
        """Nobody paid in time, but a slip is still taken for a while."""
        until = iso(self._story.at + LATE_SLIP)
        members: Json = {"is_terminal": False, "late_slip_accepted_until": until}
        effect = Shown("show_late_slip", {"order_id": self.order_id, "until": until})
        self._tell("expired", "expired", members, effect)

    def expire_for_good(self, code: str | None = None) -> None:
        """The end: nobody paid."""
        members: Json = {"is_terminal": True}
        if code is not None:
            members["cancel_reason_code"] = code
        self._tell("expired", "expired", members, self._fails("expired" if code is None else code))

    def cancel(self, code: str | None) -> None:
        """The end: it was called off; without a code the effect says expired."""
        members: Json = {"is_terminal": True}
        if code is not None:
            members["cancel_reason_code"] = code
        self._tell("canceled", "canceled", members, self._fails("expired" if code is None else code))

    def show(self, event_name: str, status: str) -> None:
        """A snapshot whose status is only passed on, known or not.

        Args:
            event_name: the event's type after `deposit.`.
        """
        effect = Shown("update_order_status", {"order_id": self.order_id, "status": status})
        self._tell(event_name, status, {"is_terminal": False}, effect)

    def settle(self, transferred_minor: int | None = None) -> None:
        """The transfer was found: credited to the user, and to the wallet after the fee.

        Args:
            transferred_minor: satang; what was ordered where None.
        """
        transferred = self.ordered_minor if transferred_minor is None else transferred_minor
        received = min(transferred, self.ordered_minor)
        fee = received * FEE_BASIS_POINTS // 10_000
        self._amounts = Amounts(self.ordered_minor, transferred, received, fee, received - fee)
        self._clears_at = self._clearing_time()
        transaction = move(self._story, "deposit_settlement", received - fee, None, "pending", (self.id, DEPOSIT_KIND))
        self._kept = {
            "balance_transaction_id": transaction,
            "clearing_available_at": iso(self._clears_at),
            "fee_breakdown": {"rate_basis_points": FEE_BASIS_POINTS, "variable_minor": fee, "name_th": "ค่าธรรมเนียม"},
            "partial": received < self.ordered_minor,
        }
        self._tell("settled", "settled", {"is_terminal": True}, None)

    def clear(self) -> None:
        """The wallet may use the money from now on."""
        clear_at(self._story, self._clears_at, self._amounts.credited or 0, self.id)

    def reverse(self, bucket: str) -> None:
        """The bank took the transfer back.

        Args:
            bucket: where the money lies: pending, or available once it was cleared.
        """
        move(self._story, "deposit_reversal", self._amounts.credited or 0, bucket, None, (self.id, DEPOSIT_KIND))
        self._tell("reversed", "reversed", {"is_terminal": True, "reversal": {"reason_code": "BANK_RECALL"}}, None)

    def note(self) -> None:
        """An event of an unknown type that leaves the status alone; only its version is new."""
        if self._status != "settled":
            raise ValueError("only a settled deposit is noted upon: others would show their status again")
        self._tell("note_added", self._status, {"is_terminal": True}, None)

    def claim(self, cause: str, amount_minor: int) -> None:
        """The payer sent too much: every snapshot from now on carries this open claim (satang)."""
        self._claim = Claim(self._story.names.claim(), cause, amount_minor)
        at = self._story.at
        self._flag = {
            "claim_id": self._claim.claim_id,
            "cause": cause,
            "amount_minor": amount_minor,
            "slip_received_at": iso(at - timedelta(seconds=7)),
            "status": "open",
            "action_required": "contact_support",
        }
        if self._story.chance(0.5):
            self._flag["expected_response_at"] = iso(at + timedelta(days=2))
        if self._story.chance(0.3):
            self._flag["note_th"] = "โอนเกิน กรุณาติดต่อฝ่ายบริการ"

    def flag(self) -> None:
        """A later snapshot of a settled deposit, made because of the claim."""
        self._tell("overpayment_flagged", "settled", {"is_terminal": True}, None)

    def skip_version(self) -> None:
        """Its state changed without an event: versions may have holes."""
        self._version += 1

    def _fails(self, reason: str | None) -> Shown:
        return Shown("fail_order", {"order_id": self.order_id, "reason": reason})

    def _tell(self, event_name: str, status: str, members: Json, shown: Shown | None) -> None:
        previous: Json = {"version": self._version}
        if self._status != status:
            previous["status"] = self._status or None
        self._version += 1
        self._status = status
        snapshot = self._snapshot(members)
        self._story.state(self.id, DEPOSIT_KIND, self._version, snapshot)
        siblings: Json = {"previous_attributes": previous}
        draft = self._story.event(f"deposit.{event_name}", snapshot, siblings)
        if self._story.livemode:
            partial = self._kept.get("partial") is True
            self._story.told.deposit_facts.append(
                DepositFact(
                    draft.id, self.id, self._version, status, self._amounts, self._claim, partial=partial, shown=shown
                )
            )

    def _snapshot(self, members: Json) -> Json:
        amounts = {
            "ordered_amount_minor": self._amounts.ordered,
            "transferred_amount_minor": self._amounts.transferred,
            "amount_received_minor": self._amounts.received,
            "fee_total_minor": self._amounts.fee,
            "credited_amount_minor": self._amounts.credited,
        }
        snapshot: Json = {
            "id": self.id,
            "object": DEPOSIT_KIND,
            "version": self._version,
            "status": self._status,
            "merchant_reference": self.reference,
            "currency": "THB",
            "created_at": iso(self._created_at),
            **{name: amount for name, amount in amounts.items() if amount is not None},
            **self._kept,
            **members,
        }
        if self._flag is not None:
            snapshot["overpayment"] = self._flag
        return snapshot

    def _correlated_at(self) -> datetime:
        """The create call mostly returns before its first webhook; sometimes minutes or hours after."""
        late = self._story.rng.random()
        if late < 0.7:
            return self._created_at - timedelta(milliseconds=self._story.rng.randint(20, 900))
        seconds = self._story.rng.randint(1, 30) if late < 0.92 else self._story.rng.randint(600, 21_600)
        return self._created_at + timedelta(seconds=seconds)

    def _clearing_time(self) -> datetime:
        low, high = (int(bound.total_seconds()) for bound in CLEARING)
        return self._story.at + timedelta(seconds=self._story.rng.randint(low, high))
