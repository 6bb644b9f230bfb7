"""The lives of withdrawals. Source: the gateway's guide on partial fills, with its very figures where it has any."""

from datetime import datetime, timedelta

from tallyhook.gateway.world.story import Story
from tallyhook.gateway.world.withdrawal_order import WithdrawalOrder
from tallyhook.gateway.world.withdrawal_snapshot import Terms

REFERENCES = ("merchant_reference", "merchant_reference", "merchant_reference", "ticket", "payout_id", "none")
THE_EXAMPLE = Terms(100_000, 2_675)
"""1,000 baht for a fee of 26.75: the order of the guide."""


def random_terms(story: Story) -> Terms:
    """100 to 50,000 baht, a fee by share and sometimes a fixed part too, at times none (satang)."""
    rng = story.rng
    amount = rng.choice((100, 500, 1_000, 3_000, 10_000, 50_000)) * 100 + rng.choice((0, 0, rng.randint(1, 9_999)))
    fee = amount * rng.choice((0, 125, 268, 300)) // 10_000 + rng.choice((0, 0, 500))
    return Terms(amount, fee, max_splits=rng.randint(4, 6), reference=rng.choice(REFERENCES))


def parts(story: Story, amount: int, count: int) -> list[int]:
    """The amount in that many chunks, none of them empty (satang)."""
    cuts = sorted(story.rng.sample(range(1, amount), count - 1))
    return [high - low for low, high in zip([0, *cuts], [*cuts, amount], strict=True)]


def pay_out(story: Story, order: WithdrawalOrder, amounts: list[int]) -> None:
    """One payer after the other is reserved and transfers, minutes apart."""
    for amount in amounts:
        story.wait(60, 900)
        order.match(amount)
        story.wait(30, 900)
        order.fill(amount)


def _at(start: datetime, seconds: float) -> datetime:
    return start + timedelta(milliseconds=round(seconds * 1_000))


def three_chunks(story: Story) -> None:
    """The guide's eight events, 1,000 in 300 + 400 + 300: its amounts, fees, versions and distances in time."""
    start = story.at
    order = WithdrawalOrder(story, THE_EXAMPLE)
    story.wait_until(_at(start, 0.106))
    order.create()
    _guide_chunk(story, order, 30_000, matched_at=_at(start, 734.716), settled_at=_at(start, 1_056.501), lag_ms=82)
    _guide_chunk(story, order, 40_000, matched_at=_at(start, 1_133.818), settled_at=_at(start, 1_861.262), lag_ms=77)
    _guide_chunk(story, order, 30_000, matched_at=_at(start, 2_327.369), settled_at=_at(start, 3_028.617), lag_ms=77)
    story.wait_until(_at(start, 3_028.7))
    order.settle()


def half_filled_expiry(story: Story) -> None:
    """The same order with 300 + 400 paid out when its time is over: 30,000 and 803 go back, 71,872 stay debited.

    The guide's expiry has version 9: two reservations had lapsed in silence before.
    """
    start = story.at
    order = WithdrawalOrder(story, THE_EXAMPLE)
    story.wait_until(_at(start, 0.106))
    order.create()
    _guide_chunk(story, order, 30_000, matched_at=_at(start, 734.716), settled_at=_at(start, 1_056.501), lag_ms=82)
    _guide_chunk(story, order, 40_000, matched_at=_at(start, 1_133.818), settled_at=_at(start, 1_861.262), lag_ms=77)
    story.wait_until(_at(start, 2_327.369))
    order.match(30_000)
    story.wait(600, 900)
    order.lapse(30_000)
    order.skip_version()
    order.wait_for_expiry()
    order.end("expired")


def _guide_chunk(
    story: Story, order: WithdrawalOrder, amount: int, *, matched_at: datetime, settled_at: datetime, lag_ms: int
) -> None:
    story.wait_until(matched_at)
    order.match(amount)
    story.wait_until(settled_at)
    order.fill(amount, lag_ms=lag_ms)


def approved_and_paid(story: Story) -> None:
    """The merchant approves first; then any number of chunks."""
    order = WithdrawalOrder(story, random_terms(story))
    order.create("pending_approval")
    story.wait(30, 3_600)
    order.show("approved", "open")
    pay_out(story, order, parts(story, order.terms.amount_minor, story.rng.randint(1, order.terms.max_splits)))
    order.settle()


def random_chunks(story: Story) -> None:
    """Any amount in any chunks; a version passes without an event."""
    order = WithdrawalOrder(story, random_terms(story))
    order.create()
    order.skip_version()
    pay_out(story, order, parts(story, order.terms.amount_minor, story.rng.randint(2, order.terms.max_splits)))
    order.settle()


def one_chunk(story: Story) -> None:
    """One payer takes all of it."""
    order = WithdrawalOrder(story, random_terms(story))
    order.create()
    pay_out(story, order, [order.terms.amount_minor])
    order.settle()


def _half_filled(story: Story) -> WithdrawalOrder:
    """Any order that has had at least one chunk and lacks at least one."""
    order = WithdrawalOrder(story, random_terms(story))
    order.create()
    chunks = parts(story, order.terms.amount_minor, story.rng.randint(2, 4))
    pay_out(story, order, chunks[: story.rng.randint(1, len(chunks) - 1)])
    return order


def random_half_filled_expiry(story: Story) -> None:
    """Any order whose time is over half-way."""
    order = _half_filled(story)
    order.wait_for_expiry()
    order.end("expired")


def canceled_half_filled(story: Story) -> None:
    """Canceled half-way: what was paid out stays paid out."""
    order = _half_filled(story)
    story.wait(60, 3_600)
    order.end("canceled")


def canceled_unfilled(story: Story) -> None:
    """Canceled before anybody paid."""
    order = WithdrawalOrder(story, random_terms(story))
    order.create()
    story.wait(60, 3_600)
    order.end("canceled")


def expired_unfilled(story: Story) -> None:
    """Nobody takes it."""
    order = WithdrawalOrder(story, random_terms(story))
    order.create()
    order.wait_for_expiry()
    order.end("expired")


def rejected(story: Story) -> None:
    """Not approved."""
    order = WithdrawalOrder(story, random_terms(story))
    order.create("pending_approval")
    story.wait(30, 3_600)
    order.reject()


def lapsed_reservation(story: Story) -> None:
    """A payer is reserved and never transfers: remaining falls, and rises again with the next event that tells it."""
    order = WithdrawalOrder(story, random_terms(story))
    order.create()
    chunks = parts(story, order.terms.amount_minor, 2)
    story.wait(60, 600)
    order.match(chunks[0])
    story.wait(900, 1_800)
    order.lapse(chunks[0])
    pay_out(story, order, chunks)
    order.settle()


def dust(story: Story) -> None:
    """The last few satang find no payer: the order is closed in full, and its chunks add up to less."""
    order = WithdrawalOrder(story, random_terms(story))
    order.create()
    rest = story.rng.randint(1, 99)
    pay_out(story, order, parts(story, order.terms.amount_minor - rest, story.rng.randint(1, 3)))
    story.wait(60, 600)
    order.absorb_dust()


def unknown_status_on_the_way(story: Story) -> None:
    """A status that nobody knows is passed on; the life goes on after it."""
    order = WithdrawalOrder(story, random_terms(story))
    order.create()
    story.wait(5, 600)
    order.show("held", "on_hold")
    pay_out(story, order, parts(story, order.terms.amount_minor, 2))
    order.settle()


def unknown_status_at_the_end(story: Story) -> None:
    """A status that nobody knows is the last word."""
    order = WithdrawalOrder(story, random_terms(story))
    order.create()
    story.wait(5, 600)
    order.show("investigated", "under_investigation")


def confirmed_after_settlement(story: Story) -> None:
    """An event of an unknown type follows with a higher version: the order is not closed again."""
    order = WithdrawalOrder(story, random_terms(story))
    order.create()
    pay_out(story, order, parts(story, order.terms.amount_minor, 2))
    order.settle()
    story.wait(60, 3_600)
    order.show("receipt_confirmed", "settled")


def still_running(story: Story) -> None:
    """At the end of this world it waits for its next payer; the last event is sparse."""
    order = _half_filled(story)
    story.wait(60, 600)
    order.match(order.totals.remaining)


WITHDRAWAL_SCENARIOS = {
    "withdrawal_three_chunks": (three_chunks, 4),
    "withdrawal_half_filled_expiry": (half_filled_expiry, 2),
    "withdrawal_approved_and_paid": (approved_and_paid, 3),
    "withdrawal_random_chunks": (random_chunks, 8),
    "withdrawal_one_chunk": (one_chunk, 4),
    "withdrawal_random_half_filled_expiry": (random_half_filled_expiry, 2),
    "withdrawal_canceled_half_filled": (canceled_half_filled, 2),
    "withdrawal_canceled_unfilled": (canceled_unfilled, 1),
    "withdrawal_expired_unfilled": (expired_unfilled, 1),
    "withdrawal_rejected": (rejected, 1),
    "withdrawal_lapsed_reservation": (lapsed_reservation, 2),
    "withdrawal_dust": (dust, 1),
    "withdrawal_unknown_status_on_the_way": (unknown_status_on_the_way, 1),
    "withdrawal_unknown_status_at_the_end": (unknown_status_at_the_end, 1),
    "withdrawal_confirmed_after_settlement": (confirmed_after_settlement, 1),
    "withdrawal_still_running": (still_running, 2),
}
"""Name -> the life, and how often it is lived in comparison with the others."""
