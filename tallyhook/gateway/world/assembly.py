"""From stories to a world: all events in one order, numbered, the wallet's balance running along."""

import json
import random
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from tallyhook.gateway.world.model import BUCKETS, ObjectState, SimEvent, SimObject, SimTransaction, World
from tallyhook.gateway.world.outcome import expected_end
from tallyhook.gateway.world.story import EventDraft, Json, Movement, Stories, iso

API_VERSION = "2026-08-01"
FIRST_SEQUENCE = 91_001


def assemble(
    stories: Stories,
    *,
    seed: int,
    merchant_id: str,
    started_at: datetime,
    scenarios: Mapping[str, int],
    withheld: Collection[str],
) -> World:
    """The world of these stories.

    Args:
        withheld: ids of events that are never delivered.
    """
    # Python's sort is stable: events of one instant keep the order in which they were told.
    drafts = sorted(stories.events, key=lambda draft: draft.at)
    events: list[SimEvent] = []
    transactions: list[SimTransaction] = []
    balance = dict.fromkeys(BUCKETS, 0)
    test_balance = dict.fromkeys(BUCKETS, 0)
    for sequence, draft in enumerate(drafts, start=FIRST_SEQUENCE):
        snapshot = draft.object
        if draft.movement is not None:
            _apply(balance if draft.livemode else test_balance, draft.movement)
            after = dict(balance if draft.livemode else test_balance)
            snapshot = snapshot | {"balance_after": {f"{bucket}_minor": held for bucket, held in after.items()}}
            if draft.livemode:
                transactions.append(_transaction(draft.movement, draft.at, after, snapshot))
        events.append(_event(draft, snapshot, sequence, merchant_id, never_delivered=draft.id in withheld))
    arrived = [event for event in events if not event.never_delivered]
    objects = {object_id: _object(stories, object_id) for object_id in stories.kinds}
    return World(
        seed=seed,
        merchant_id=merchant_id,
        started_at=started_at,
        events=tuple(events),
        objects=dict(sorted(objects.items(), key=lambda item: item[1].created_at)),
        transactions=tuple(transactions),
        correlations=tuple(stories.correlations),
        scenarios=scenarios,
        expected=expected_end(stories, events, transactions, arrived),
        expected_complete=expected_end(stories, events, transactions, events),
    )


def choose_withheld(stories: Stories, rng: random.Random, count: int) -> frozenset[str]:
    """Ids of that many events of live mode, or all but two: a hole in the sequence needs a neighbour on each side."""
    live = [draft.id for draft in sorted(stories.events, key=lambda draft: draft.at) if draft.livemode]
    candidates = live[1:-1]
    return frozenset(rng.sample(candidates, min(count, len(candidates))))


def encode(value: Json, *, escaped: bool = False) -> bytes:
    """Compact JSON; pure ASCII where `escaped`."""
    return json.dumps(value, ensure_ascii=escaped, separators=(",", ":")).encode()


def _event(draft: EventDraft, snapshot: Json, sequence: int, merchant_id: str, *, never_delivered: bool) -> SimEvent:
    version, status = snapshot.get("version"), snapshot.get("status")
    body: Json = {
        "id": draft.id,
        "object": "event",
        "type": draft.type,
        "api_version": API_VERSION,
        "livemode": draft.livemode,
        "created_at": iso(draft.at),
        "sequence": sequence,
        "account": {"merchant_id": merchant_id, "white_label_id": None},
        "data": {"object": snapshot} | draft.siblings,
    }
    return SimEvent(
        id=draft.id,
        type=draft.type,
        object_id=str(snapshot["id"]),
        object_kind=str(snapshot["object"]),
        version=version if isinstance(version, int) else None,
        status=status if isinstance(status, str) else "",
        sequence=sequence,
        created_at=draft.at,
        livemode=draft.livemode,
        body=encode(body | draft.envelope, escaped=draft.escaped),
        never_delivered=never_delivered,
    )


def _apply(balance: dict[str, int], movement: Movement) -> None:
    if movement.bucket_from is not None:
        balance[movement.bucket_from] -= movement.amount_minor
    if movement.bucket_to is not None:
        balance[movement.bucket_to] += movement.amount_minor


def _transaction(movement: Movement, at: datetime, after: Mapping[str, int], snapshot: Json) -> SimTransaction:
    return SimTransaction(
        id=movement.id,
        type=movement.type,
        direction=movement.direction,
        amount_minor=movement.amount_minor,
        bucket_from=movement.bucket_from,
        bucket_to=movement.bucket_to,
        source_id=movement.source_id,
        created_at=at,
        balance_after=after,
        body=encode(snapshot),
    )


def _object(stories: Stories, object_id: str) -> SimObject:
    kind, scenario = stories.kinds[object_id]
    states: Sequence[ObjectState] = [
        ObjectState(state.at, state.version, state.status, encode(state.snapshot))
        for state in stories.states[object_id]
    ]
    return SimObject(object_id, kind, scenario, tuple(states))
