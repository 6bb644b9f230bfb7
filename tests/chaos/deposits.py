"""Random lives of deposits as a gateway would send them, and by a few lines of its own what must come of them."""

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass

from tests.running import MERCHANT

LIVES = (
    ("open", "slip_received", "settled"),
    ("open", "slip_received", "under_review", "settled"),
    ("open", "slip_received", "settled", "reversed"),
    ("open", "expired", "slip_received", "settled"),
    ("open", "expired"),
    ("open", "slip_received", "rejected"),
    ("open", "canceled"),
    ("settled", "settled", "reversed", "reversed"),
)


@dataclass(frozen=True)
class PostedEvent:
    """An event as it is posted, and the three facts the calculation needs."""

    id: str
    deposit: str
    version: int
    status: str
    received_minor: int
    body: bytes


@dataclass(frozen=True)
class World:
    """The events in the order of their posting (duplicates included), and to whom each deposit belongs."""

    deliveries: list[PostedEvent]
    correlations: dict[str, tuple[str, str, str]]

    @property
    def events(self) -> dict[str, PostedEvent]:
        """Every event once, by id."""
        return {event.id: event for event in self.deliveries}


def make_world(seed: int, events: int, deposits: int) -> World:
    """At least `events` events of `deposits` deposits and 50 users, shuffled, a third of them sent twice or more."""
    chance = random.Random(seed)
    made: list[PostedEvent] = []
    correlations = {}
    for number in range(deposits):
        deposit = f"dep_{seed}_{number}"
        correlations[deposit] = (f"ref_{seed}_{number}", f"ord_{seed}_{number}", f"user_{number % 50}")
        made += _life(chance, deposit, chance.choice(LIVES), len(made))
    number = 0
    while len(made) < events:
        deposit = f"dep_{seed}_{number}"
        highest = max(event.version for event in made if event.deposit == deposit)
        made.append(_event(chance, deposit, highest + 1, "attributes_changed", len(made), 0, 0))
        number += 1
    again = [event for event in made if chance.random() < 0.33 for _ in range(chance.randint(1, 2))]
    deliveries = made + again
    chance.shuffle(deliveries)
    return World(deliveries, correlations)


def expected_balances(applied: Iterable[tuple[str, str]], world: World) -> tuple[dict[str, int], dict[str, int]]:
    """Balances by user and entries by key, from (deposit, event id) in the order in which the sink took them."""
    balances: dict[str, int] = {}
    entries: dict[str, int] = {}
    newest: dict[str, int] = {}
    for deposit, event_id in applied:
        event = world.events[event_id]
        if event.version <= newest.get(deposit, -1):
            continue
        newest[deposit] = event.version
        credit, debit = f"deposit:{deposit}:credit", f"deposit:{deposit}:debit"
        amount = 0
        if event.status == "settled" and credit not in entries:
            amount = entries[credit] = event.received_minor
        elif event.status == "reversed" and credit in entries and debit not in entries:
            amount = entries[debit] = -entries[credit]
        if amount:
            user = world.correlations[deposit][2]
            balances[user] = balances.get(user, 0) + amount
    return balances, entries


def _life(chance: random.Random, deposit: str, statuses: tuple[str, ...], sequence: int) -> list[PostedEvent]:
    ordered = chance.randint(1, 10_000) * 100
    transferred = ordered + chance.choice((0, 0, 0, 500, -50))
    version = 0
    events: list[PostedEvent] = []
    for status in statuses:
        version += chance.randint(1, 3)
        events.append(_event(chance, deposit, version, status, sequence + len(events), ordered, transferred))
    return events


def _event(
    chance: random.Random, deposit: str, version: int, status: str, sequence: int, ordered: int, transferred: int
) -> PostedEvent:
    event_id = f"evt_{deposit}_{version}"
    received = min(ordered, transferred)
    fee = received * 15 // 1000
    obj: dict[str, object] = {"id": deposit, "object": "deposit_order", "version": version, "status": status}
    if status in ("settled", "reversed"):
        obj |= {
            "ordered_amount_minor": ordered,
            "transferred_amount_minor": transferred,
            "amount_received_minor": received,
            "fee_total_minor": fee,
            "credited_amount_minor": received - fee,
            "partial": transferred < ordered,
        }
    if status == "expired":
        obj |= {"is_terminal": False, "late_slip_accepted_until": "2026-03-03T10:04:41Z"}
    body = {
        "id": event_id,
        "object": "event",
        "type": f"deposit.{status}",
        "livemode": True,
        "created_at": "2026-03-02T10:04:41Z",
        "sequence": sequence,
        "account": {"merchant_id": MERCHANT},
        "data": {"object": obj},
        "padding": "x" * chance.randint(0, 600),
    }
    return PostedEvent(event_id, deposit, version, status, received, json.dumps(body).encode())
