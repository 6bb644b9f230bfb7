"""Withdrawals: their rows, chunks, reversals and effects against what must be."""

from collections.abc import Iterator

from tallyhook.gateway.world.compare_rows import compare_effects, compare_facts, compare_members, members_of
from tallyhook.gateway.world.ending import ExpectedEnd
from tallyhook.gateway.world.stored import Stored

_COLUMNS = (
    "status",
    "our_ref",
    "amount_total_minor",
    "fee_total_minor",
    "total_locked_minor",
    "max_splits",
    "filled_minor",
    "remaining_minor",
    "refunded_minor",
    "fee_recognized_minor",
    "settled_splits",
    "replacement_withdrawal_id",
    "refund_enqueued",
    "user_lock_released",
)


def compare_withdrawals(expected: ExpectedEnd, stored: Stored) -> Iterator[str]:
    """A sentence for each difference of any withdrawal; also for rows of withdrawals that must have none."""
    withdrawals = expected.withdrawals
    rows = stored.by_key("withdrawals", [*withdrawals, *expected.absent_objects], "pg_withdrawal_id")
    fills = stored.by_owner("fills", withdrawals, "pg_withdrawal_id")
    tombstones = stored.by_owner("tombstones", withdrawals, "pg_withdrawal_id")
    effects = stored.by_owner("effects", withdrawals, "aggregateid")
    for withdrawal_id in sorted(rows.keys() - withdrawals.keys()):
        yield f"Withdrawal {withdrawal_id}: version {rows[withdrawal_id]['pg_version']} is there, must not be."
    for withdrawal_id, withdrawal in withdrawals.items():
        what = f"Withdrawal {withdrawal_id}"
        row = rows.get(withdrawal_id)
        if row is None:
            yield f"{what}: there is no row, must be {withdrawal.status} at version {withdrawal.version}."
            continue
        yield from compare_members(what, row, {"pg_version": withdrawal.version} | members_of(withdrawal, _COLUMNS))
        if withdrawal.closed is not None and row["closed"] is not withdrawal.closed:
            yield f"{what}: closed is {row['closed']}, must be {withdrawal.closed}."
        yield from compare_facts(
            what, "leg_ref", fills[withdrawal_id], {fill.leg_ref: fill for fill in withdrawal.fills}
        )
        yield from compare_facts(
            f"{what}, reversals",
            "leg_ref",
            tombstones[withdrawal_id],
            {tombstone.leg_ref: tombstone for tombstone in withdrawal.tombstones},
        )
        yield from compare_effects(what, effects[withdrawal_id], withdrawal.effects)
