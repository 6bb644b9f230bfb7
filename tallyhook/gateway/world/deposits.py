"""The lives of deposits. Source: the gateway's guide on event order, its cases A and B and its code for deposits."""

from tallyhook.gateway.world.deposit_order import DepositOrder
from tallyhook.gateway.world.story import Story

REVIEW_TEXTS = ("กำลังตรวจสอบชื่อผู้โอน", "ยอดเงินไม่ตรง กรุณารอเจ้าหน้าที่", None)
REJECTION_TEXTS = ("สลิปไม่ชัด 😿 é", "ชื่อบัญชีไม่ตรง", None)
CANCEL_CODES = ("BY_USER", "MERCHANT_REQUEST", None)


def _amount(story: Story) -> int:
    """1 to 50,000 baht, mostly round (satang)."""
    baht = story.rng.choice((100, 300, 500, 1_000, 2_500, 5_000, 20_000, 50_000))
    return baht * 100 + (story.rng.randint(0, 9_999) if story.chance(0.4) else 0)


def _opened(story: Story, *, correlated: bool = True) -> DepositOrder:
    order = DepositOrder(story, _amount(story), correlated=correlated, first_version=int(story.chance(0.9)))
    order.open()
    story.wait(20, 900)
    return order


def plain(story: Story) -> None:
    """Open, then settled; the money clears later."""
    order = _opened(story)
    order.settle()
    order.clear()


def slip_and_settle(story: Story) -> None:
    """A slip comes in and is found good."""
    order = _opened(story)
    order.slip()
    story.wait(1, 120)
    order.settle()
    order.clear()


def reviewed_and_settled(story: Story) -> None:
    """A person looks at the slip before it settles; a version passes without an event."""
    order = _opened(story)
    order.slip()
    story.wait(1, 60)
    order.review(story.rng.choice(REVIEW_TEXTS))
    story.wait(60, 7_200)
    order.skip_version()
    order.settle()
    order.clear()


def late_slip(story: Story) -> None:
    """Expired, yet a slip of the next 24 hours settles it: an expiry that arrives last must change nothing."""
    order = _opened(story)
    story.wait(1_800, 3_600)
    order.expire_for_now()
    story.wait(600, 23 * 3_600)
    order.slip()
    order.skip_version()
    story.wait(60, 600)
    order.settle()
    order.clear()


def expired_for_good(story: Story) -> None:
    """Nobody pays, not within the late window either."""
    order = _opened(story)
    story.wait(1_800, 3_600)
    if story.chance(0.5):
        order.expire_for_now()
        story.wait(24 * 3_600, 24 * 3_600 + 60)
    order.expire_for_good("SLIP_WINDOW_CLOSED" if story.chance(0.3) else None)


def expired_in_late_window(story: Story) -> None:
    """Nobody pays, and at the end of this world a slip would still be taken."""
    order = _opened(story)
    story.wait(1_800, 3_600)
    order.expire_for_now()


def canceled(story: Story) -> None:
    """Called off, with and without a code."""
    _opened(story).cancel(story.rng.choice(CANCEL_CODES))


def rejected(story: Story) -> None:
    """The slip is no good; the text for the user is Thai and may hold an emoji, or there is none."""
    order = _opened(story)
    order.slip()
    story.wait(5, 300)
    if story.chance(0.5):
        order.review(story.rng.choice(REVIEW_TEXTS))
        story.wait(60, 3_600)
    order.reject(story.rng.choice(REJECTION_TEXTS))


def settled_then_reversed(story: Story) -> None:
    """The bank takes the transfer back while it is still pending, within minutes: the reversal often arrives first."""
    order = _opened(story)
    order.settle()
    story.wait(0.05, 0.5 if story.chance(0.5) else 400)
    order.skip_version()
    order.reverse("pending")


def reversed_after_clearing(story: Story) -> None:
    """The same a day later, from the available money."""
    order = _opened(story)
    order.slip()
    story.wait(1, 60)
    order.settle()
    order.clear()
    story.wait(60, 3_600)
    order.reverse("available")


def overpaid_in_one_transfer(story: Story) -> None:
    """More was sent than ordered: the claim comes with the slip, and stays in every later snapshot."""
    order = _opened(story)
    excess = story.rng.randint(1, order.ordered_minor)
    order.claim("same_transfer_excess", excess)
    order.slip()
    story.wait(5, 60)
    order.settle(order.ordered_minor + excess)
    order.clear()


def overpaid_by_another_transfer(story: Story) -> None:
    """A second transfer comes after it has settled: the claim stands only in a later snapshot, hours later at times."""
    order = _opened(story)
    order.settle()
    story.wait(30, 14_400)
    order.claim("additional_transfer", story.rng.randint(100, 100_000))
    order.flag()
    order.clear()


def overpaid_then_reversed(story: Story) -> None:
    """A claim of a deposit that is taken back: the flag is kept although nothing of the money is."""
    order = _opened(story)
    excess = story.rng.randint(1, 5_000)
    order.claim("same_transfer_excess", excess)
    order.settle(order.ordered_minor + excess)
    story.wait(1, 600)
    order.reverse("pending")


def partly_paid(story: Story) -> None:
    """Less was transferred than ordered: the user is credited with what came, the goods are released as partial."""
    order = _opened(story)
    order.slip()
    story.wait(5, 60)
    order.settle(story.rng.randint(order.ordered_minor // 2, order.ordered_minor - 1))
    order.clear()


def noted_after_settlement(story: Story) -> None:
    """An event of an unknown type follows the settlement with a higher version: nothing is credited again."""
    order = _opened(story)
    order.settle()
    story.wait(1, 3_600)
    order.note()
    order.clear()


def unknown_status_on_the_way(story: Story) -> None:
    """A status that nobody knows is passed on; the life goes on after it."""
    order = _opened(story)
    order.show("screened", "รอธนาคาร")
    story.wait(5, 600)
    order.show("bank_delayed", "bank_delayed")
    story.wait(5, 600)
    order.settle()
    order.clear()


def unknown_status_at_the_end(story: Story) -> None:
    """A status that nobody knows is the last word."""
    order = _opened(story)
    order.slip()
    story.wait(5, 600)
    order.show("frozen", "frozen_by_bank")


def still_open(story: Story) -> None:
    """At the end of this world it waits for a slip, or for the bank's word on one."""
    order = _opened(story)
    if story.chance(0.5):
        order.slip()


def never_correlated(story: Story) -> None:
    """The answer to the create call got lost: nobody knows to whom it belongs, so it stays parked."""
    order = _opened(story, correlated=False)
    order.slip()
    story.wait(1, 60)
    order.settle()
    order.clear()


DEPOSIT_SCENARIOS = {
    "deposit_plain": (plain, 14),
    "deposit_slip": (slip_and_settle, 8),
    "deposit_reviewed": (reviewed_and_settled, 4),
    "deposit_late_slip": (late_slip, 4),
    "deposit_expired_for_good": (expired_for_good, 3),
    "deposit_expired_in_late_window": (expired_in_late_window, 1),
    "deposit_canceled": (canceled, 2),
    "deposit_rejected": (rejected, 3),
    "deposit_reversed_while_pending": (settled_then_reversed, 4),
    "deposit_reversed_after_clearing": (reversed_after_clearing, 2),
    "deposit_overpaid_in_one_transfer": (overpaid_in_one_transfer, 2),
    "deposit_overpaid_by_another_transfer": (overpaid_by_another_transfer, 2),
    "deposit_overpaid_then_reversed": (overpaid_then_reversed, 1),
    "deposit_partly_paid": (partly_paid, 2),
    "deposit_noted_after_settlement": (noted_after_settlement, 1),
    "deposit_unknown_status_on_the_way": (unknown_status_on_the_way, 1),
    "deposit_unknown_status_at_the_end": (unknown_status_at_the_end, 1),
    "deposit_still_open": (still_open, 2),
    "deposit_never_correlated": (never_correlated, 1),
}
"""Name -> the life, and how often it is lived in comparison with the others."""
