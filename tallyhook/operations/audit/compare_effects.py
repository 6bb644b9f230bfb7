"""The check `outbox` for one object: the effects that its events give, once, in order, and nothing else."""

from tallyhook.operations.audit.expected import DOUBT, ExpectedEffect, Outcome
from tallyhook.operations.audit.findings import Check
from tallyhook.operations.audit.numbers import Kept
from tallyhook.operations.audit.stored_event import parse_json, same_json
from tallyhook.operations.audit.stored_objects import OutboxRow, StoredObject

_AFTER = "balance_after_minor"


def compare_outbox(stored: StoredObject, expected: Outcome, kept: Kept, check: Check) -> None:
    """Holds the rows of one object against the effects that its events give."""
    check.looked_at += len(stored.outbox)
    wanted = {effect.dedupe_key: (place, effect) for place, effect in enumerate(expected.effects)}
    present = {event.event_id for event in stored.events}
    last: dict[str, tuple[int, OutboxRow]] = {}
    for row in stored.outbox:
        place, effect = wanted.pop(row.dedupe_key, (-1, None))
        if effect is None or (not effect.certain and row.causation_id not in present):
            if row.causation_id not in present and kept.inbox_is_pruned(stored.partition):
                check.leave_out("outbox rows whose event was pruned from the inbox")
            else:
                _fail(check, stored, row, "no event gives this effect")
            continue
        if differs := _differences(row, effect):
            _fail(check, stored, row, f"it differs from what event {effect.cause.event_id} gives: {', '.join(differs)}")
        # A deposit and a withdrawal of one id, if ever, have no order among each other.
        before, last[effect.aggregate_type] = last.get(effect.aggregate_type), (place, row)
        if before is not None and place < before[0]:
            _fail(check, stored, row, f"it stands behind {before[1].dedupe_key}, which came of a later event")
    for dedupe_key, (place, effect) in wanted.items():
        cause = effect.cause
        if not effect.certain:
            check.leave_out("effects of which only a pruned event knew whether they had left before")
            continue
        written_at, later = cause.processed_at, last.get(effect.aggregate_type)
        before_the_kept = later is None or place < later[0]
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
        "aggregatetype": (row.aggregate_type, effect.aggregate_type),
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
    must = effect.payload
    if isinstance(payload, dict) and DOUBT in must.values():
        payload = {name: DOUBT if must.get(name) is DOUBT else value for name, value in payload.items()}
    if not same_json(payload, must):
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
