"""The checks `aggregates` and `chunks` for one withdrawal."""

from collections.abc import Mapping

from tallyhook.operations.audit.expected import DOUBT
from tallyhook.operations.audit.findings import Check
from tallyhook.operations.audit.snapshot import Snapshot
from tallyhook.operations.audit.stored_event import WITHDRAWAL, Unreadable
from tallyhook.operations.audit.stored_objects import StoredObject
from tallyhook.operations.audit.withdrawal_events import Fill, Tombstone, read_withdrawal
from tallyhook.operations.audit.withdrawals import MARKS, Facts, Withdrawal, doubtful_row


def recompute(stored: StoredObject) -> Withdrawal:
    """The withdrawal's life by its events, from what was imported on where it was."""
    imported, made = stored.imported, Withdrawal(stored.id)
    if imported is not None:
        made = Withdrawal(stored.id, imported.withdrawal(), imported.fills(), imported.tombstones())
    made.apply_all(stored.of_kind(WITHDRAWAL))
    return made


def recompute_in_doubt(stored: StoredObject, *, had_row: bool = True) -> Withdrawal:
    """The same where events were pruned, and what they did is not known.

    Chunks and reversals that no kept event brought are taken as they stand. A kept event brought none if it is noted as
    having found it.

    Args:
        had_row: it was there before the first kept event; else the first that could built it, and pruned ones that had
            waited for it were applied after it.
    """
    events = stored.of_kind(WITHDRAWAL)
    brought: dict[tuple[str, str], bool] = {}
    for event in events:
        if event.processed_at is None:
            continue
        try:
            reading = read_withdrawal(event, stored.id)
        except Unreadable:
            continue
        found = event.reason == ("older_version" if event.verdict == "late" else "already_compensated")
        for name, fact in (("fill", reading.fill), ("reversal", reading.tombstone)):
            if fact is not None:
                brought.setdefault((name, fact.leg_ref), not found)
    fills = {leg: fill for leg, fill in stored.fills.items() if not brought.get(("fill", leg))}
    tombstones = {leg: one for leg, one in stored.tombstones.items() if not brought.get(("reversal", leg))}
    made = Withdrawal(stored.id, doubtful_row() if had_row else None, unseen=Facts(fills, tombstones))
    made.apply_all(events)
    return made


def compare_row(stored: StoredObject, expected: Withdrawal, check: Check) -> None:
    """Version, status and totals are those of the highest version, what is set once is what came first."""
    row, must = stored.withdrawal, expected.row
    ids = {"withdrawal_id": stored.id}
    if row is None:
        # Of events that were pruned alone it is not known whether there ever was one.
        if must is not None and (must["pg_version"] is not DOUBT or expected.outcome.judgements):
            check.fail(f"withdrawal {stored.id} has applied events and no row in pg_withdrawals", **ids)
        return
    check.looked_at += 1
    if must is None:
        check.fail(f"withdrawal {stored.id} has a row, and no event or import gives it", **ids)
        return
    differs = [
        f"{name} is {_shown(name, row[name])}, and must be {_shown(name, value)}"
        for name, value in must.items()
        if value is not DOUBT and row[name] != value
    ]
    if DOUBT in must.values():
        check.leave_out("withdrawals with columns that come from an event that was pruned from the inbox")
        if row["pg_version"] < expected.highest_seen:
            differs.append(f"pg_version is {row['pg_version']}, below {expected.highest_seen}, which it has seen")
    if differs:
        check.fail(f"withdrawal {stored.id}: {'; '.join(differs)}", **ids)


def _shown(name: str, value: object) -> object:
    return value if name not in MARKS else "set" if value else "null"


def compare_chunks(stored: StoredObject, expected: Withdrawal, check: Check) -> None:
    """Each chunk and each reversal that an applied event carried is kept as it was first seen, and nothing else is."""
    check.looked_at += len(stored.fills) + len(stored.tombstones)
    _compare_facts("chunk", stored, stored.fills, expected.fills, check)
    _compare_facts("reversal of chunk", stored, stored.tombstones, expected.tombstones, check)


def _compare_facts(
    what: str,
    stored: StoredObject,
    found: Mapping[str, Fill] | Mapping[str, Tombstone],
    wanted: Mapping[str, Fill] | Mapping[str, Tombstone],
    check: Check,
) -> None:
    for leg_ref in sorted(found.keys() | wanted.keys()):
        row, must = found.get(leg_ref), wanted.get(leg_ref)
        where, ids = f"{what} {leg_ref} of withdrawal {stored.id}", {"leg_ref": leg_ref, "withdrawal_id": stored.id}
        if must is None:
            check.fail(f"{where} comes from no applied event", **ids)
        elif row is None:
            check.fail(f"{where} is not kept", **ids)
        elif row is must:
            check.leave_out("chunks and reversals whose events were pruned from the inbox")
        elif row != must:
            differs = [
                f"{name} is {getattr(row, name)} instead of {getattr(must, name)}"
                for name in row.__slots__
                if getattr(row, name) != getattr(must, name)
            ]
            check.fail(f"{where}: {', '.join(differs)}", **ids)


def check_crossings(snapshot: Snapshot, check: Check) -> None:
    """What binds reversals and chunks of different withdrawals: no key of a table holds all of it."""
    for transaction_id, one, other in snapshot.walk("shared_transactions"):
        legs = f"chunk {one}" if one == other else f"chunks {one} and {other}"
        check.fail(
            f"balance transaction {transaction_id} is named more than once by the reversals of {legs}",
            transaction_id=str(transaction_id),
            leg_ref=str(one),
        )
    for leg_ref, filled, taken_back in snapshot.walk("contradictions"):
        check.fail(
            f"chunk {leg_ref} of withdrawal {filled} and its reversal, of withdrawal {taken_back}, do not fit together",
            leg_ref=str(leg_ref),
            withdrawal_id=str(filled),
        )
