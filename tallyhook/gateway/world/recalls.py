"""The lives of withdrawals of which a chunk is taken back.

Source: the gateway's guide on partial fills, `withdrawal.fill_reversed`. That nothing is asked for a replacement is an
assumption.
"""

from tallyhook.gateway.world.story import Story
from tallyhook.gateway.world.withdrawal_order import WithdrawalOrder
from tallyhook.gateway.world.withdrawal_snapshot import Terms
from tallyhook.gateway.world.withdrawals import THE_EXAMPLE, parts, pay_out, random_terms

REASON_CODES = ("BANK_RECALL", "ACCOUNT_FROZEN", "SLIP_INVALIDATED_AFTER_SETTLEMENT")


def _paid(story: Story, terms: Terms, chunks: list[int]) -> WithdrawalOrder:
    order = WithdrawalOrder(story, terms)
    order.create()
    pay_out(story, order, chunks)
    order.settle()
    return order


def recalled_with_replacement(story: Story) -> None:
    """Hours after it has settled a chunk is taken back; another order is opened for it and paid out."""
    order = _paid(story, THE_EXAMPLE, [30_000, 40_000, 30_000])
    story.wait(600, 7_200)
    chunk = story.rng.choice(order.chunks)
    replacement = WithdrawalOrder(story, Terms(chunk.fact.amount_minor, 0), replaces=order.id)
    order.reverse(chunk, story.rng.choice(REASON_CODES), replacement.id)
    replacement.create()
    pay_out(story, replacement, [chunk.fact.amount_minor])
    replacement.settle()


def recalled_at_once(story: Story) -> None:
    """The last chunk is taken back within the second: the reversal often arrives before the fill and the summary."""
    terms = random_terms(story)
    order = _paid(story, terms, parts(story, terms.amount_minor, story.rng.randint(1, 3)))
    story.wait(0.01, 0.4)
    order.reverse(order.chunks[-1], story.rng.choice(REASON_CODES))


def recalled_twice(story: Story) -> None:
    """Two chunks of a settled order are taken back, each compensated by itself."""
    terms = random_terms(story)
    order = _paid(story, terms, parts(story, terms.amount_minor, 3))
    for chunk in story.rng.sample(order.chunks, 2):
        story.wait(60, 3_600)
        order.reverse(chunk, story.rng.choice(REASON_CODES))


def recalled_before_settlement(story: Story) -> None:
    """A chunk is taken back right after it came, then another payer takes it, and the order settles."""
    order = WithdrawalOrder(story, random_terms(story))
    order.create()
    chunks = parts(story, order.terms.amount_minor, story.rng.randint(2, 3))
    pay_out(story, order, chunks[:1])
    story.wait(0.01, 0.4)
    order.reverse(order.chunks[0], story.rng.choice(REASON_CODES))
    pay_out(story, order, chunks)
    order.settle()


def recalled_and_expired(story: Story) -> None:
    """A chunk of a half-filled order is taken back, and nobody else takes it: the order expires."""
    order = WithdrawalOrder(story, random_terms(story))
    order.create()
    chunks = parts(story, order.terms.amount_minor, 3)
    pay_out(story, order, chunks[:2])
    story.wait(60, 1_800)
    order.reverse(order.chunks[1], story.rng.choice(REASON_CODES))
    order.wait_for_expiry()
    order.end("expired")


def recalled_after_expiry(story: Story) -> None:
    """The recall comes when the order has expired: its snapshot says expired, and so does the refund's arrival."""
    order = WithdrawalOrder(story, random_terms(story))
    order.create()
    chunks = parts(story, order.terms.amount_minor, 3)
    pay_out(story, order, chunks[:2])
    order.wait_for_expiry()
    order.end("expired")
    story.wait(0.01, 3_600)
    order.reverse(order.chunks[0], story.rng.choice(REASON_CODES))


RECALL_SCENARIOS = {
    "recall_with_replacement": (recalled_with_replacement, 2),
    "recall_at_once": (recalled_at_once, 2),
    "recall_twice": (recalled_twice, 1),
    "recall_before_settlement": (recalled_before_settlement, 1),
    "recall_then_expiry": (recalled_and_expired, 1),
    "recall_after_expiry": (recalled_after_expiry, 1),
}
"""Name -> the life, and how often it is lived in comparison with the others."""
