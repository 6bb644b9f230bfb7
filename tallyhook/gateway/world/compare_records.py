"""The inbox, the users' balances and the wallet's movements against what must be."""

from collections.abc import Iterator

from tallyhook.gateway.world.compare_rows import compare_members, members_of
from tallyhook.gateway.world.ending import ExpectedEnd
from tallyhook.gateway.world.stored import Stored

_COLUMNS = ("type", "direction", "amount_minor", "bucket_from", "bucket_to", "source_id")


def compare_inbox(expected: ExpectedEnd, stored: Stored) -> Iterator[str]:
    """Every event that came is known and processed or parked; test events, and those that did not come, are not."""
    must: dict[str, str | None] = dict.fromkeys(expected.processed, None) | dict(expected.parked)
    held = {str(row["event_id"]): row["parked_reason"] for row in stored.rows("inbox", [*must, *expected.absent])}
    missing = sorted(must.keys() - held.keys())
    reasons = {str(row["event_id"]): row["reason"] for row in stored.rows("set_aside", missing)}
    for event_id in missing:
        why = f"set aside as {reasons[event_id]}" if event_id in reasons else "not known"
        yield f"Event {event_id}: it is {why}, must be {_state(must[event_id])}."
    for event_id in sorted(held.keys() - must.keys()):
        yield f"Event {event_id}: it is {_state(held[event_id])}, must not be in the inbox."
    for event_id in sorted(must.keys() & held.keys()):
        if held[event_id] != must[event_id]:
            yield f"Event {event_id}: it is {_state(held[event_id])}, must be {_state(must[event_id])}."


def compare_balances(expected: ExpectedEnd, stored: Stored) -> Iterator[str]:
    """What each user has, satang; a user without a row has nothing."""
    held = {str(row["user_id"]): row["balance_minor"] for row in stored.rows("balances", expected.user_balances)}
    for user_id, must in expected.user_balances.items():
        if held.get(user_id, 0) != must:
            yield f"User {user_id}: the balance is {held.get(user_id, 0)}, must be {must}."


def compare_transactions(expected: ExpectedEnd, stored: Stored) -> Iterator[str]:
    """Every movement that was told of is recorded as it was told, and each bucket adds up."""
    must = expected.transactions
    rows = stored.by_key("transactions", [*must, *expected.absent_objects], "btxn_id")
    sums: dict[str, int] = {}
    for transaction_id, row in rows.items():
        if transaction_id not in must:
            yield f"Balance transaction {transaction_id}: {dict(row)} is there, must not be."
            continue
        what = f"Balance transaction {transaction_id}"
        yield from compare_members(what, row, members_of(must[transaction_id], _COLUMNS))
        for bucket, sign in ((row["bucket_from"], -1), (row["bucket_to"], 1)):
            if isinstance(bucket, str) and isinstance(row["amount_minor"], int):
                sums[bucket] = sums.get(bucket, 0) + sign * row["amount_minor"]
    for transaction_id in sorted(must.keys() - rows.keys()):
        yield f"Balance transaction {transaction_id}: it is not recorded, must be {must[transaction_id]}."
    for bucket in sorted(sums.keys() | expected.bucket_sums.keys()):
        held, right = sums.get(bucket, 0), expected.bucket_sums.get(bucket, 0)
        if held != right:
            yield f"Bucket {bucket}: the recorded movements add up to {held}, must be {right}."


def _state(parked_reason: object) -> str:
    return "processed" if parked_reason is None else f"parked ({parked_reason})"
