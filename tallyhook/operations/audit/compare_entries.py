"""The check `ledger` for one object: the credit and the debit that a deposit's events give, and what was imported."""

from dataclasses import replace

from tallyhook.operations.audit.deposits import Deposit
from tallyhook.operations.audit.expected import Entry
from tallyhook.operations.audit.findings import Check
from tallyhook.operations.audit.stored_objects import StoredObject


def compare_entries(stored: StoredObject, expected: Deposit, check: Check) -> None:
    """Holds the entries of one deposit, or the one of an opening balance, against those that must be there."""
    check.looked_at += len(stored.entries)
    present = {event.event_id for event in stored.events}
    wanted = {entry.key: entry for entry in expected.entries}
    for key, entry in stored.entries.items():
        if key not in wanted and expected.earlier_pruned and entry.event_id not in present:
            check.leave_out("entries whose event was pruned from the inbox")
            _compare_pair(stored, entry, check)
            continue
        must = wanted.pop(key, None)
        if must is None:
            check.fail(
                f"entry {key} ({entry.amount_minor} for {entry.user_id}, event {entry.event_id}) is there, and no event"
                " gives it",
                entry_key=key,
                deposit_id=stored.id,
                event_id=entry.event_id,
            )
        elif entry != must:
            check.fail(
                f"entry {key} is {entry.amount_minor} for {entry.user_id} by event {entry.event_id}, and must be"
                f" {must.amount_minor} for {must.user_id} by event {must.event_id}",
                entry_key=key,
                deposit_id=stored.id,
                event_id=entry.event_id,
            )
    for key, must in wanted.items():
        check.fail(
            f"entry {key} ({must.amount_minor} for {must.user_id}) is missing, which event {must.event_id} gives",
            entry_key=key,
            deposit_id=stored.id,
            event_id=must.event_id,
        )


def _compare_pair(stored: StoredObject, entry: Entry, check: Check) -> None:
    """A debit repeats its credit, also where both their events are pruned."""
    credit = stored.entries.get(f"deposit:{stored.id}:credit")
    if not entry.key.endswith(":debit"):
        return
    if credit is None or replace(credit, key=entry.key, amount_minor=-credit.amount_minor, event_id=entry.event_id) != (
        entry
    ):
        check.fail(
            f"entry {entry.key} does not take back what deposit:{stored.id}:credit gave",
            entry_key=entry.key,
            deposit_id=stored.id,
        )
