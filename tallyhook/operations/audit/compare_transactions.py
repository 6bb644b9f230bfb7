"""The check `transactions` for one balance transaction."""

from tallyhook.operations.audit.expected import Outcome
from tallyhook.operations.audit.findings import Check
from tallyhook.operations.audit.numbers import Kept
from tallyhook.operations.audit.stored_event import TRANSACTION
from tallyhook.operations.audit.stored_objects import StoredObject
from tallyhook.operations.audit.transactions import Movement, Transaction


def compare(stored: StoredObject, kept: Kept, check: Check) -> Outcome:
    """It is kept as the first event that was applied brought it; gives what must be noted of its events."""
    expected = Movement(stored.id, earlier_pruned=kept.inbox_is_pruned(stored.partition))
    if stored.imported is not None:
        expected.kept = stored.imported.transaction()
    expected.apply_all(stored.of_kind(TRANSACTION))
    row, must = stored.transaction, expected.kept
    if row is not None:
        check.looked_at += 1
    if row is None:
        if must is not None:
            check.fail(f"balance transaction {stored.id} is not kept", transaction_id=stored.id)
    elif must is None:
        if expected.earlier_pruned:
            check.leave_out("balance transactions whose events were pruned from the inbox")
        else:
            check.fail(f"balance transaction {stored.id} comes from no applied event", transaction_id=stored.id)
    elif differs := _differences(row, must, first_is_pruned=expected.first_is_pruned, check=check):
        check.fail(f"balance transaction {stored.id}: {', '.join(differs)}", transaction_id=stored.id)
    return expected.outcome


def _differences(row: Transaction, must: Transaction, *, first_is_pruned: bool, check: Check) -> list[str]:
    if not first_is_pruned:
        return row.differences(must)
    check.leave_out("balance transactions whose first event was pruned: its merchant and balance_after are not judged")
    return [] if row.is_same(must) else row.differences(must)
