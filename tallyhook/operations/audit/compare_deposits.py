"""The checks `aggregates` and `flags` for one deposit."""

from tallyhook.operations.audit.deposits import Deposit, SeenFlag
from tallyhook.operations.audit.expected import Entry
from tallyhook.operations.audit.findings import Check
from tallyhook.operations.audit.imported import Imported
from tallyhook.operations.audit.numbers import Kept
from tallyhook.operations.audit.stored_event import AMOUNTS, DEPOSIT, Json, moment, parse_json, same_json
from tallyhook.operations.audit.stored_objects import DepositRow, FlagRow, StoredObject

_MOMENTS = ("late_slip_accepted_until", "clearing_available_at")
_JSON = ("fee_breakdown", "overpayment")
UNKNOWN = "(unknown)"


def recompute(stored: StoredObject, kept: Kept) -> Deposit:
    """The deposit's life by its events, from what was imported on where it was."""
    row = stored.deposit
    expected = Deposit(
        stored.id,
        row.our_order_id if row is not None else UNKNOWN,
        row.our_user_id if row is not None else UNKNOWN,
        earlier_pruned=kept.inbox_is_pruned(stored.partition),
    )
    if stored.imported is not None:
        _begin_imported(stored, stored.imported, expected)
    elif expected.earlier_pruned:
        _take_ledger(stored, expected)
    expected.apply_all(stored.of_kind(DEPOSIT))
    return expected


def _take_ledger(stored: StoredObject, expected: Deposit) -> None:
    """What pruned events did to the ledger is only in the ledger: it is taken as it stands."""
    present = {event.event_id for event in stored.events}
    gone = {key: entry for key, entry in stored.entries.items() if entry.event_id not in present}
    expected.credit = gone.get(f"deposit:{stored.id}:credit")
    expected.reversed = f"deposit:{stored.id}:debit" in gone


def _begin_imported(stored: StoredObject, imported: Imported, expected: Deposit) -> None:
    """The row as it was taken over; the amount that the handler before had credited is only in the ledger."""
    source = f"import:{imported.source}"
    expected.flags = {claim: SeenFlag(*seen) for claim, seen in imported.flags().items()}
    expected.entries += [
        Entry(f"import:{user_id}:opening", user_id, amount_minor, source)
        for user_id, amount_minor in imported.openings()
    ]
    row = imported.deposit()
    if row is None or expected.earlier_pruned:
        _take_ledger(stored, expected)
        return
    expected.version, expected.snapshot = row["pg_version"], row
    expected.order_id, expected.user_id = row["our_order_id"], row["our_user_id"]
    if row["credited_user_at"] is None:
        return
    there = stored.entries.get(f"deposit:{stored.id}:credit")
    amount = there.amount_minor if there is not None else row["amount_received_minor"] or 0
    expected.credit = Entry(f"deposit:{stored.id}:credit", expected.user_id, amount, source)
    expected.entries.append(expected.credit)
    if row["reversed_at"] is not None:
        expected.reversed = True
        expected.entries.append(Entry(f"deposit:{stored.id}:debit", expected.user_id, -amount, source))


def compare_row(stored: StoredObject, expected: Deposit, check: Check) -> None:
    """Version, status and every column are those of the highest version that was applied; marks follow the entries."""
    row = stored.deposit
    if row is None:
        if expected.highest_seen >= 0 or expected.snapshot is not None:
            check.fail(f"deposit {stored.id} has applied events and no row in pg_deposits", deposit_id=stored.id)
        return
    check.looked_at += 1
    differs = _owner_differs(row)
    if expected.snapshot is not None:
        differs += _values_differ(row, expected.version, expected.snapshot)
    elif not expected.earlier_pruned:
        differs.append("no event was applied to it")
    else:
        check.leave_out("deposits whose row comes from an event that was pruned from the inbox")
        if row.pg_version < expected.highest_seen:
            differs.append(f"pg_version is {row.pg_version}, below {expected.highest_seen}, which it has seen")
    credited = expected.credit is not None
    if row.credited != credited:
        differs.append(f"credited_user_at is {_set(row.credited)}, and must be {_set(credited)}")
    if row.reversed != expected.reversed:
        differs.append(f"reversed_at is {_set(row.reversed)}, and must be {_set(expected.reversed)}")
    if differs:
        check.fail(f"deposit {stored.id}: {'; '.join(differs)}", deposit_id=stored.id)


def _owner_differs(row: DepositRow) -> list[str]:
    owner = (row.our_order_id, row.our_user_id)
    correlated = (row.correlated_order_id, row.correlated_user_id)
    if owner == correlated:
        return []
    return [f"it belongs to order and user {owner}, and pg_deposit_correlations says {correlated}"]


def _values_differ(row: DepositRow, version: int | None, o: Json) -> list[str]:
    wanted: dict[str, object] = {"pg_version": version, "status": o["status"], "is_terminal": o.get("is_terminal")}
    wanted |= {name: o.get(name) for name in (*AMOUNTS, "balance_transaction_id")}
    wanted |= {name: moment(o.get(name)) for name in _MOMENTS}
    differs = [
        f"{name} is {getattr(row, name)}, and must be {value}"
        for name, value in wanted.items()
        if getattr(row, name) != value
    ]
    # JSON null would be the text `null`; an absent member must be SQL NULL.
    for name in _JSON:
        text: str | None = getattr(row, name)
        if text == "null" or not same_json(parse_json(text), o.get(name)):
            differs.append(f"{name} is not what the event has")
    return differs


def compare_flags(stored: StoredObject, expected: Deposit, check: Check) -> None:
    """Each claim that an applied event carried is kept, with the content and the version that came first."""
    check.looked_at += len(stored.flags)
    for claim_id, row in stored.flags.items():
        seen = expected.flags.get(claim_id)
        ids = {"claim_id": claim_id, "deposit_id": stored.id}
        if seen is None:
            if expected.earlier_pruned:
                check.leave_out("flags whose events were pruned from the inbox")
            else:
                check.fail(f"flag {claim_id} of deposit {stored.id} comes from no applied event", **ids)
            continue
        differs = _flag_differs(row, seen)
        if row.version != seen.version and not expected.earlier_pruned:
            differs.append(f"first seen at version {row.version} instead of {seen.version}")
        if differs:
            check.fail(f"flag {claim_id} of deposit {stored.id}: {', '.join(differs)}", **ids)
    for claim_id, seen in expected.flags.items():
        if claim_id not in stored.flags:
            check.fail(
                f"flag {claim_id} of deposit {stored.id}, version {seen.version}, is not kept",
                claim_id=claim_id,
                deposit_id=stored.id,
            )


def _flag_differs(row: FlagRow, seen: SeenFlag) -> list[str]:
    flag = seen.flag
    pairs: dict[str, tuple[object, object]] = {
        "cause": (row.cause, flag.get("cause")),
        "amount_minor": (row.amount_minor, flag.get("amount_minor")),
        "slip_received_at": (row.slip_received_at, moment(flag.get("slip_received_at"))),
        "status": (row.status, flag.get("status")),
        "action_required": (row.action_required, flag.get("action_required")),
        "expected_response_at": (row.expected_response_at, moment(flag.get("expected_response_at"))),
    }
    differs = [f"{name} is {kept} instead of {sent}" for name, (kept, sent) in pairs.items() if kept != sent]
    if not same_json(parse_json(row.raw), flag):
        differs.append("raw_flag is not what the event has")
    return differs


def _set(there: bool) -> str:
    return "set" if there else "null"
