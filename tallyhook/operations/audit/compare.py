"""One object: what its stored events give, held against what is stored of it."""

from dataclasses import replace

from tallyhook.operations.audit.compare_effects import compare_outbox
from tallyhook.operations.audit.compare_rows import compare_flags, compare_row
from tallyhook.operations.audit.findings import Checks
from tallyhook.operations.audit.numbers import Kept
from tallyhook.operations.audit.recompute import Deposit, Entry
from tallyhook.operations.audit.stored_objects import StoredObject

UNKNOWN = "(unknown)"


def compare(stored: StoredObject, kept: Kept, checks: Checks) -> None:
    """Answers `aggregates`, `flags`, `verdicts`, `ledger` and `outbox` for one object."""
    expected = _recompute(stored, kept)
    _compare_verdicts(stored, expected, checks)
    compare_row(stored, expected, checks["aggregates"])
    compare_flags(stored, expected, checks["flags"])
    _compare_entries(stored, expected, checks)
    compare_outbox(stored, expected, kept, checks["outbox"])


def _recompute(stored: StoredObject, kept: Kept) -> Deposit:
    row = stored.deposit
    expected = Deposit(
        stored.id,
        row.our_order_id if row is not None else UNKNOWN,
        row.our_user_id if row is not None else UNKNOWN,
        earlier_pruned=kept.inbox_is_pruned(stored.partition),
    )
    if expected.earlier_pruned:
        # What pruned events did to the ledger is only in the ledger: it is taken as it stands.
        present = {event.event_id for event in stored.events}
        gone = {key: entry for key, entry in stored.entries.items() if entry.event_id not in present}
        expected.credit = gone.get(f"deposit:{stored.id}:credit")
        expected.reversed = f"deposit:{stored.id}:debit" in gone
    expected.apply_all(stored.events)
    return expected


def _compare_verdicts(stored: StoredObject, expected: Deposit, checks: Checks) -> None:
    check = checks["verdicts"]
    check.looked_at += len(expected.judgements)
    for event, why in expected.unreadable:
        check.fail(
            f"event {event.event_id} of {stored.id} was applied, but had to be quarantined: {why}",
            event_id=event.event_id,
            object_id=stored.id,
        )
    for judgement in expected.judgements:
        event = judgement.event
        if (event.verdict, event.reason) != (judgement.verdict, judgement.reason):
            check.fail(
                f"event {event.event_id} of {stored.id} is noted as {_words(event.verdict, event.reason)}, and must be"
                f" {_words(judgement.verdict, judgement.reason)}",
                event_id=event.event_id,
                object_id=stored.id,
            )


def _words(verdict: str, reason: str | None) -> str:
    return verdict if reason is None else f"{verdict} ({reason})"


def _compare_entries(stored: StoredObject, expected: Deposit, checks: Checks) -> None:
    check = checks["ledger"]
    check.looked_at += len(stored.entries)
    present = {event.event_id for event in stored.events}
    wanted = {entry.key: entry for entry in expected.entries}
    for key, entry in stored.entries.items():
        if key not in wanted and expected.earlier_pruned and entry.event_id not in present:
            check.leave_out("entries whose event was pruned from the inbox")
            _compare_pair(stored, entry, checks)
            continue
        must = wanted.pop(key, None)
        if must is None:
            check.fail(
                f"entry {key} ({entry.amount_minor} for {entry.user_id}, event {entry.event_id}) is there, and no"
                " event gives it",
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


def _compare_pair(stored: StoredObject, entry: Entry, checks: Checks) -> None:
    """A debit repeats its credit, also where both their events are pruned."""
    credit = stored.entries.get(f"deposit:{stored.id}:credit")
    if not entry.key.endswith(":debit"):
        return
    if credit is None or replace(credit, key=entry.key, amount_minor=-credit.amount_minor, event_id=entry.event_id) != (
        entry
    ):
        checks["ledger"].fail(
            f"entry {entry.key} does not take back what deposit:{stored.id}:credit gave",
            entry_key=entry.key,
            deposit_id=stored.id,
        )
