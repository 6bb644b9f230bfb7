"""The check `outbox` for one object: the effects that its events give, once, in order, and nothing else."""

from tallyhook.operations.audit.findings import Check
from tallyhook.operations.audit.numbers import Kept
from tallyhook.operations.audit.recompute import Deposit, ExpectedEffect
from tallyhook.operations.audit.stored_event import parse_json, same_json
from tallyhook.operations.audit.stored_objects import OutboxRow, StoredObject

_AFTER = "balance_after_minor"


def compare_outbox(stored: StoredObject, expected: Deposit, kept: Kept, check: Check) -> None:
    """Holds the rows of one object against the effects that its events give."""
    check.looked_at += len(stored.outbox)
    wanted = {effect.dedupe_key: (place, effect) for place, effect in enumerate(expected.effects)}
    present = {event.event_id for event in stored.events}
    last_place, last_row = -1, None
    for row in stored.outbox:
        place, effect = wanted.pop(row.dedupe_key, (-1, None))
        if effect is None:
            if row.causation_id not in present and kept.inbox_is_pruned(stored.partition):
                check.leave_out("outbox rows whose event was pruned from the inbox")
            else:
                _fail(check, stored, row, "no event gives this effect")
            continue
        if differs := _differences(row, effect):
            _fail(check, stored, row, f"it differs from what event {effect.cause.event_id} gives: {', '.join(differs)}")
        if place < last_place and last_row is not None:
            _fail(check, stored, row, f"it stands behind {last_row.dedupe_key}, which came of a later event")
        last_place, last_row = place, row
    found_first = last_row is None
    for dedupe_key, (place, effect) in wanted.items():
        cause = effect.cause
        written_at = cause.processed_at
        before_the_kept = found_first or place < last_place
        if before_the_kept and written_at is not None and kept.outbox_is_pruned(cause.partition, written_at):
            check.leave_out("effects whose outbox row may have been pruned")
            continue
        check.fail(
            f"effect {dedupe_key} of {stored.id} is missing, which event {cause.event_id} gives",
            dedupe_key=dedupe_key,
            object_id=stored.id,
            event_id=cause.event_id,
            partition=cause.partition,
        )


def _differences(row: OutboxRow, effect: ExpectedEffect) -> list[str]:
    differs = []
    for name, (found, must) in {
        "topic": (row.topic, effect.topic),
        "type": (row.type, effect.topic),
        "causation_id": (row.causation_id, effect.cause.event_id),
        "version": (row.version, effect.version),
        "partition": (row.partition, effect.cause.partition),
    }.items():
        if found != must:
            differs.append(f"{name} is {found} instead of {must}")
    payload = parse_json(row.payload)
    # Other deposits of the user move the balance too: the ledger's check follows it.
    if effect.topic == "balance_entry" and isinstance(payload, dict) and not isinstance(payload.pop(_AFTER, None), int):
        differs.append(f"{_AFTER} is no whole number")
    if not same_json(payload, effect.payload):
        differs.append(f"payload is {row.payload}")
    return differs


def _fail(check: Check, stored: StoredObject, row: OutboxRow, why: str) -> None:
    check.fail(
        f"outbox partition {row.partition}, row {row.seq} ({row.topic}, {row.dedupe_key}) of {stored.id}: {why}",
        dedupe_key=row.dedupe_key,
        object_id=stored.id,
        event_id=row.causation_id,
        partition=row.partition,
        seq=row.seq,
    )
