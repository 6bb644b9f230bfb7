"""Deposits: their rows, flags, credits and effects against what must be."""

from collections.abc import Iterator

from schemas.effects import BALANCE_ENTRY
from tallyhook.gateway.world.compare_rows import compare_effects, compare_members, members_of
from tallyhook.gateway.world.ending import ExpectedDeposit, ExpectedEnd
from tallyhook.gateway.world.stored import Row, Stored

_COLUMNS = (
    "status",
    "our_order_id",
    "our_user_id",
    "ordered_amount_minor",
    "transferred_amount_minor",
    "amount_received_minor",
    "fee_total_minor",
    "credited_amount_minor",
    "projected_claim",
)


def compare_deposits(expected: ExpectedEnd, stored: Stored) -> Iterator[str]:
    """A sentence for each difference of any deposit; also for rows of deposits that must have none."""
    deposits = expected.deposits
    rows = stored.by_key("deposits", [*deposits, *expected.absent_objects], "pg_deposit_id")
    flags = stored.by_owner("flags", deposits, "pg_deposit_id")
    effects = stored.by_owner("effects", deposits, "aggregateid")
    keys = [f"deposit:{deposit_id}:{side}" for deposit_id in deposits for side in ("credit", "debit")]
    entries = stored.by_key("entries", keys, "entry_key")
    for deposit_id in sorted(rows.keys() - deposits.keys()):
        yield f"Deposit {deposit_id}: version {rows[deposit_id]['pg_version']} is there, must not be."
    for deposit_id, deposit in deposits.items():
        what = f"Deposit {deposit_id}"
        row = rows.get(deposit_id)
        if row is None:
            yield f"{what}: there is no row, must be {deposit.status} at version {deposit.version}."
            continue
        yield from compare_members(what, row, {"pg_version": deposit.version} | members_of(deposit, _COLUMNS))
        yield from _compare_flags(what, flags[deposit_id], deposit)
        yield from _compare_money(what, row, deposit, entries, effects[deposit_id])
        yield from compare_effects(what, effects[deposit_id], deposit.effects)


def _compare_flags(what: str, rows: list[Row], deposit: ExpectedDeposit) -> Iterator[str]:
    held = {str(row["claim_id"]): (row["cause"], row["amount_minor"]) for row in rows}
    if held != deposit.claims:
        yield f"{what}: its overpayment flags are {held}, must be {dict(deposit.claims)}."


def _compare_money(
    what: str, row: Row, deposit: ExpectedDeposit, entries: dict[str, Row], outbox: list[Row]
) -> Iterator[str]:
    """The user's credit: kept, or taken back in full, or never given, and the goods accordingly."""
    keys = {side: f"deposit:{deposit.id}:{side}" for side in ("credit", "debit")}
    held = {
        side: (entries[key]["user_id"], entries[key]["amount_minor"]) for side, key in keys.items() if key in entries
    }
    kept = {"credit": (deposit.our_user_id, deposit.amount_received_minor)}
    taken_back = kept | {"debit": (deposit.our_user_id, -(deposit.amount_received_minor or 0))}
    if deposit.credit_minor is not None:
        right = held == kept
        must = f"{kept}"
    elif deposit.taken_back:
        right = held in ({}, taken_back)
        must = f"{taken_back}, or none at all"
    else:
        right, must = not held, "none"
    if not right:
        yield f"{what}: the user's entries are {held}, must be {must}."
    marks = (row["credited"], row["reversed"])
    if marks != ("credit" in held, "debit" in held):
        yield f"{what}: credited and reversed are marked {marks}, but the user's entries are {held}."
    topics = [str(entry["topic"]) for entry in outbox]
    for side, effect in (("credit", "release_goods"), ("debit", "hold_goods")):
        if (effect in topics) != (side in held):
            yield f"{what}: {effect} left {topics.count(effect)} times, but the user's entries are {held}."
    told = {str(entry["dedupe_key"]) for entry in outbox if entry["topic"] == BALANCE_ENTRY}
    if told != {keys[side] for side in held}:
        yield f"{what}: the balance entries that left are {sorted(told)}, but the user's entries are {held}."
