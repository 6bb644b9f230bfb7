"""A withdrawal order: paid out chunk by chunk by several payers; some of its snapshots are sparse.

Source: the gateway's guide on partial fills. Assumed beyond it: a chunk that is taken back before the order has ended
goes back to the pool (filled falls, remaining rises); one that is taken back after its end leaves the totals alone.
"""

from dataclasses import replace
from datetime import timedelta

from tallyhook.gateway.world.ending import ExpectedFill, ExpectedTombstone
from tallyhook.gateway.world.facts import Shown, WithdrawalFact, WithdrawalTerms
from tallyhook.gateway.world.story import Json, Story, iso
from tallyhook.gateway.world.wallet import WITHDRAWAL_KIND, move
from tallyhook.gateway.world.withdrawal_snapshot import (
    Chunk,
    Parties,
    Terms,
    Totals,
    previous_attributes,
    receipts,
    sparse_snapshot,
    whole_snapshot,
)

EXPIRES_AFTER = timedelta(hours=6)
AUTO_CONFIRM_AFTER = timedelta(hours=3)
ENDED = frozenset({"settled", "expired", "canceled", "rejected"})


class WithdrawalOrder:
    """One withdrawal while its life is told; amounts are satang.

    Args:
        story: where it is told.
        terms: what is asked for.
        replaces: the id of the withdrawal that it was opened for, after a recall.
    """

    def __init__(self, story: Story, terms: Terms, *, replaces: str | None = None) -> None:
        names = story.names
        self.terms, self._story = terms, story
        self.totals = self._told = Totals("", 0, terms.amount_minor)
        self.chunks: list[Chunk] = []
        self._version = self._told_version = 0
        self._kept: Json = {}
        """Members that stay in every snapshot once they are there."""
        self._parties = Parties(
            id=names.withdrawal(),
            user=story.rng.choice(story.users),
            beneficiary=names.ours("ben_"),
            reference=names.ours("WD-"),
            created_at=story.at,
            expires_at=story.at + EXPIRES_AFTER,
            replaces=replaces,
        )
        if story.livemode:
            locked = terms.amount_minor + terms.fee_minor
            story.told.withdrawal_terms.append(
                WithdrawalTerms(self.id, self.our_ref, terms.amount_minor, terms.fee_minor, locked, terms.max_splits)
            )

    @property
    def id(self) -> str:
        """The order's id."""
        return self._parties.id

    @property
    def our_ref(self) -> str | None:
        """The merchant's reference, None where no event carries one."""
        return None if self.terms.reference == "none" else self._parties.reference

    def wait_for_expiry(self) -> None:
        """Lets time go by until its last moment has passed."""
        self._story.wait_until(self._parties.expires_at + timedelta(milliseconds=2_936))

    def create(self, status: str = "open") -> None:
        """Locks amount and fee; `status` is open or pending_approval."""
        self._move("withdrawal_lock", self.terms.amount_minor + self.terms.fee_minor, "available", "locked")
        self._tell("created", replace(self.totals, status=status))

    def show(self, event_name: str, status: str) -> None:
        """A whole snapshot with another status, known or not; the type is `withdrawal.` and the name."""
        self._tell(event_name, replace(self.totals, status=status))

    def match(self, amount: int) -> None:
        """A payer is reserved: remaining falls; the event is sparse."""
        now = self.totals
        self._tell(
            "matched",
            replace(
                now,
                remaining=now.remaining - amount,
                reserved=now.reserved + amount,
                matched_legs=now.matched_legs + 1,
            ),
            sparse=True,
        )

    def lapse(self, amount: int) -> None:
        """A reservation lapses in silence: a version passes, and no event tells that remaining has risen."""
        now = self.totals
        self.totals = replace(now, remaining=now.remaining + amount, reserved=now.reserved - amount)
        self._version += 1
        self._note_state()
        self._story.wait(0.001, 0.009)

    def fill(self, amount: int, *, lag_ms: int = 80) -> Chunk:
        """A reserved payer's money has landed.

        Args:
            lag_ms: from the landing to the event, which comes only once the slip was checked.
        """
        now, order = self.totals, self.terms
        filled = now.filled + amount
        recognized = order.fee_minor * filled // order.amount_minor
        fee = recognized - now.fee_recognized
        settled_at = self._story.at
        transaction = self._move("withdrawal_fill", amount, "locked", None)
        if fee:
            self._move("withdrawal_fee", fee, "locked", None)
        self._story.wait_until(settled_at + timedelta(milliseconds=lag_ms))
        fact = ExpectedFill(self._story.names.leg(), amount, fee, transaction, reversed=False)
        members: Json = {
            "leg_ref": fact.leg_ref,
            "sequence": len(self.chunks) + 1,
            "amount_minor": amount,
            "fee_recognized_minor": fee,
            "settled_at": iso(settled_at),
            "balance_transaction_id": transaction,
            "auto_confirm_at": iso(settled_at + AUTO_CONFIRM_AFTER),
        }
        chunk = Chunk(fact, members)
        self.chunks.append(chunk)
        after = replace(
            now,
            status="settled" if filled == order.amount_minor else "partially_filled",
            filled=filled,
            reserved=now.reserved - amount,
            fee_recognized=recognized,
            splits=now.splits + 1,
        )
        self._tell("filled", after, siblings={"fill": members}, fill=fact)
        return chunk

    def settle(self) -> None:
        """The summary after the last chunk; `fills` tells which receipts the payee has confirmed."""
        self._tell(
            "settled", replace(self.totals, refunded=0), {"dust_absorbed": False, "fills": receipts(self.chunks)}
        )

    def absorb_dust(self) -> None:
        """The rest is too small to find a payer for: the order is closed in full, by no chunk."""
        now, order = self.totals, self.terms
        self._move("withdrawal_dust", now.remaining, "locked", None)
        fee = order.fee_minor - now.fee_recognized
        if fee:
            self._move("withdrawal_fee", fee, "locked", None)
        after = replace(
            now,
            status="settled",
            filled=order.amount_minor,
            remaining=0,
            fee_recognized=order.fee_minor,
            refunded=0,
        )
        self._tell("settled", after, {"dust_absorbed": True, "fills": receipts(self.chunks)})

    def end(self, status: str) -> None:
        """Expired or canceled: unfilled principal and unused fee go back, as two movements.

        Reserved money counts as unfilled; a payer who was reserved is let go first.
        """
        now, order = self.totals, self.terms
        refunded = order.amount_minor - now.filled
        released = self._move("withdrawal_refund", refunded, "locked", "available")
        fee_unused = order.fee_minor - now.fee_recognized
        if fee_unused:
            self._move("withdrawal_fee_refund", fee_unused, "locked", "available")
        after = replace(now, status=status, remaining=refunded, reserved=0, refunded=refunded)
        self._tell(status, after, {"released_balance_transaction_id": released})

    def reject(self) -> None:
        """Not approved: the whole lock is released."""
        self._move("withdrawal_unlock", self.terms.amount_minor + self.terms.fee_minor, "locked", "available")
        self._tell("rejected", replace(self.totals, status="rejected"))

    def reverse(self, chunk: Chunk, reason_code: str, replacement_withdrawal_id: str | None = None) -> None:
        """A chunk is taken back; the money returns to the wallet, into the lock while the order still runs.

        Args:
            reason_code: BANK_RECALL, ACCOUNT_FROZEN or SLIP_INVALIDATED_AFTER_SETTLEMENT.
        """
        now, order, fact = self.totals, self.terms, chunk.fact
        running = now.status not in ENDED
        transaction = self._move(
            "withdrawal_fill_reversal", fact.amount_minor, None, "locked" if running else "available"
        )
        after = now
        if running:
            filled = now.filled - fact.amount_minor
            recognized = order.fee_minor * filled // order.amount_minor
            if now.fee_recognized > recognized:
                self._move("withdrawal_fee_reversal", now.fee_recognized - recognized, None, "locked")
            after = replace(
                now,
                status="partially_filled" if filled else "open",
                filled=filled,
                remaining=now.remaining + fact.amount_minor,
                fee_recognized=recognized,
                splits=now.splits - 1,
            )
        tombstone = ExpectedTombstone(
            fact.leg_ref,
            fact.amount_minor,
            reason_code,
            fact.balance_transaction_id,
            transaction,
            replacement_withdrawal_id,
        )
        siblings: Json = {
            "fill": chunk.event_members,
            "reversal": {
                "reason_code": reason_code,
                "reverses_balance_transaction_id": fact.balance_transaction_id,
                "balance_transaction_id": transaction,
            },
        }
        if replacement_withdrawal_id is not None:
            siblings["replacement_withdrawal_id"] = replacement_withdrawal_id
        self._tell("fill_reversed", after, siblings=siblings, tombstone=tombstone)

    def skip_version(self) -> None:
        """Its state changed without an event: versions may have holes."""
        self._version += 1

    def _move(self, transaction_type: str, amount: int, bucket_from: str | None, bucket_to: str | None) -> str:
        return move(self._story, transaction_type, amount, bucket_from, bucket_to, (self.id, WITHDRAWAL_KIND))

    def _tell(
        self,
        event_name: str,
        totals: Totals,
        members: Json | None = None,
        *,
        siblings: Json | None = None,
        fill: ExpectedFill | None = None,
        tombstone: ExpectedTombstone | None = None,
        sparse: bool = False,
    ) -> None:
        """One event: the totals that hold from now on, and what comes with it."""
        self._version += 1
        self.totals = totals
        self._kept |= members or {}
        whole = self._note_state()
        previous: Json = {"previous_attributes": previous_attributes(self._told_version, self._told, totals)}
        snapshot = sparse_snapshot(self._parties, self._version, totals) if sparse else whole
        draft = self._story.event(f"withdrawal.{event_name}", snapshot, (siblings or {}) | previous)
        self._told, self._told_version = totals, self._version
        if self._story.livemode:
            self._story.told.withdrawal_facts.append(
                WithdrawalFact(
                    draft.id,
                    self.id,
                    self._version,
                    totals.status,
                    totals.filled,
                    totals.remaining,
                    totals.refunded if not sparse else None,
                    totals.fee_recognized if not sparse else None,
                    totals.splits if not sparse else None,
                    whole=not sparse,
                    fill=fill,
                    tombstone=tombstone,
                    shown=None if tombstone is not None else self._shown(totals),
                )
            )

    def _note_state(self) -> Json:
        """What the API shows from now on."""
        snapshot = whole_snapshot(self._parties, self.terms, self._version, self.totals) | self._kept
        self._story.state(self.id, WITHDRAWAL_KIND, self._version, snapshot)
        return snapshot

    def _shown(self, totals: Totals) -> Shown | None:
        if totals.status == "partially_filled":
            progress = {"filled_minor": totals.filled, "amount_total_minor": self.terms.amount_minor}
            return Shown("show_progress", {"ticket": self.our_ref, **progress})
        if totals.status in ENDED:
            return None
        return Shown("update_local_status", {"ticket": self.our_ref, "status": totals.status})
