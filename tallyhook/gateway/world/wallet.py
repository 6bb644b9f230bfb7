"""The merchant's wallet: every movement is a balance transaction with an event of its own.

Which types and buckets there are is an assumption; the contract names balance.credited, balance.cleared and available.
"""

from datetime import datetime

from tallyhook.gateway.world.story import Json, Movement, Story, iso

TRANSACTION_KIND = "balance_transaction"
DEPOSIT_KIND = "deposit_order"
WITHDRAWAL_KIND = "withdrawal_order"

OPENING_MINOR = 1_000_000_000
OPENING_PER_STORY_MINOR = 10_000_000
"""Twice what the largest withdrawal of a story and its replacement lock, so that the wallet never falls below zero."""


def move(
    story: Story,
    transaction_type: str,
    amount_minor: int,
    bucket_from: str | None,
    bucket_to: str | None,
    source: tuple[str, str] | None,
) -> str:
    """Moves money now and gives the transaction's id.

    Args:
        transaction_type: data.object.type.
        amount_minor: satang, above zero.
        bucket_from, bucket_to: None is outside of the wallet.
        source: id and kind of the order behind it; None for top-ups.
    """
    if amount_minor <= 0:
        raise ValueError(f"{transaction_type} moves {amount_minor} satang: it must be above zero")
    event_type, direction = _kind_of(transaction_type, bucket_from, bucket_to)
    source_id = None if source is None else source[0]
    movement = Movement(
        story.names.transaction(), transaction_type, direction, amount_minor, bucket_from, bucket_to, source_id
    )
    snapshot: Json = {
        "id": movement.id,
        "object": TRANSACTION_KIND,
        "type": transaction_type,
        "direction": direction,
        "amount_minor": amount_minor,
        "bucket_from": bucket_from,
        "bucket_to": bucket_to,
        "source": None if source is None else {"id": source[0], "object": source[1]},
        "created_at": iso(story.at),
    }
    story.event(event_type, snapshot, movement=movement)
    return movement.id


def _kind_of(transaction_type: str, bucket_from: str | None, bucket_to: str | None) -> tuple[str, str]:
    """The event's type and the transaction's direction: what becomes available is a credit, wherever it was."""
    if transaction_type == "adjustment":
        # A type of event that no contract names: the object's kind alone says what it is.
        return "balance.adjusted", "credit" if bucket_from is None else "debit"
    if bucket_from == "pending" and bucket_to == "available":
        return "balance.cleared", "transfer"
    if bucket_to == "locked" and bucket_from is not None:
        return "balance.locked", "transfer"
    if bucket_to is None:
        return "balance.debited", "debit"
    return "balance.credited", "credit"


def clear_at(story: Story, moment: datetime, amount_minor: int, deposit_id: str) -> None:
    """Moves a deposit's money from pending to available once that time has come."""
    story.wait_until(moment)
    move(story, "deposit_clearing", amount_minor, "pending", "available", (deposit_id, DEPOSIT_KIND))


def open_wallet(story: Story, stories: int) -> None:
    """The first movement of a world: enough for every withdrawal of that many stories."""
    move(story, "top_up", OPENING_MINOR + stories * OPENING_PER_STORY_MINOR, None, "available", None)


def top_up(story: Story) -> None:
    """The merchant pays in."""
    move(story, "top_up", story.rng.randrange(1, 500) * 10_000, None, "available", None)


def adjustment(story: Story) -> None:
    """The gateway corrects the wallet, in an event of a type that nobody knows."""
    if story.chance(0.5):
        move(story, "adjustment", story.rng.randint(1, 9_999), None, "available", None)
    else:
        move(story, "adjustment", story.rng.randint(1, 9_999), "available", None, None)


WALLET_SCENARIOS = {"top_up": (top_up, 2), "adjustment_of_unknown_type": (adjustment, 1)}
"""Name -> the life, and how often it is lived in comparison with the others."""
