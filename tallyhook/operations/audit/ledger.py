"""The users' side of the check `ledger`: each balance is the sum of its entries, and was so after each of them."""

from tallyhook.operations.audit.findings import Check
from tallyhook.operations.audit.snapshot import Snapshot


def check_balances(snapshot: Snapshot, check: Check) -> None:
    """Compares every user's balance and the announced balances with the entries (satang)."""
    check.looked_at += int(snapshot.rows("count_users")[0][0])
    for user_id, balance, total in snapshot.walk("balances"):
        check.fail(
            f"user {user_id} has a balance of {balance}, and entries that sum up to {total}", user_id=str(user_id)
        )
    check.leave_out(
        "users whose balances step by step are not followed: entries of theirs are not in the outbox (any more)",
        int(snapshot.rows("unannounced")[0][0]),
    )
    for user_id, balance, step in snapshot.walk("steps"):
        sort = "announced as the balance after an entry" if step > 0 else "needed as the balance before an entry"
        check.fail(
            f"user {user_id}: {balance} is {sort} {abs(step)} times more often than the other way round",
            user_id=str(user_id),
        )
