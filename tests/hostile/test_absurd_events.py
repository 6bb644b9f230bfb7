"""Authentic and absurd: each delivery ends in one place, with its bytes, and the honest ones beside it go on."""

from collections import Counter
from random import Random

import pytest

from ingress.envelope import BadEnvelope, Envelope, read
from ingress.records import event_headers
from schemas.headers import verdict_headers
from sinks.records import SinkRecord
from tests.hostile import absurd
from tests.integration.sinks.conftest import Road
from tests.integration.sinks.deliveries import deposit

EVENTS = 400
BATCH_EVENTS = 50
RECEIVED_AT = "2026-01-02T03:04:06+00:00"

WHERE = """
SELECT source_offset, 'inbox' FROM pg_webhook_inbox
UNION ALL SELECT source_offset, 'redelivery' FROM redeliveries
UNION ALL SELECT source_offset, 'quarantine' FROM quarantined_events
"""


def envelope_of(raw: bytes) -> Envelope | None:
    """What the door reads; None for a dead letter."""
    try:
        return read(raw, max_id_bytes=512)
    except BadEnvelope:
        return None


def record(offset: int, epoch: int, raw: bytes, envelope: Envelope) -> SinkRecord:
    """The record of `state-changes` of a delivery; its place there is its place in `events`."""
    headers = [
        *event_headers(envelope, source="/gateway", received_at=RECEIVED_AT, origin="webhook", key_id="k1"),
        *verdict_headers("advanced", None, None, 0, offset),
    ]
    return SinkRecord(0, offset, epoch, raw, headers)


@pytest.mark.parametrize("seed", [1, 2])
def test_each_absurd_event_ends_in_one_place(road: Road, seed: int) -> None:
    """Inbox, redelivery or quarantine: one of them, once; the bytes are the signed ones; nobody else is hindered."""
    print(f"seed {seed}")
    chance = Random(seed)
    applier = road.applier(0)
    road.correlate(*(f"obj_{number}" for number in range(0, EVENTS, 2)), "dep-honest")
    bodies: list[bytes] = []
    for number in range(EVENTS):
        made = absurd.body(chance, number)
        bodies += [made] * (2 if chance.random() < 0.1 else 1)
        if number % 100 == 50:
            bodies.append(deposit(f"evt-honest-{number}", "dep-honest", number, "open").body)
    taken = [(raw, envelope) for raw in bodies if (envelope := envelope_of(raw)) is not None and envelope.livemode]
    records = [record(offset, applier.epoch(0), raw, envelope) for offset, (raw, envelope) in enumerate(taken)]

    for begin in range(0, len(records), BATCH_EVENTS):
        applier.apply(records[begin : begin + BATCH_EVENTS])
    applier.apply_ready()

    places = road.rows(WHERE)
    assert sorted(offset for offset, _ in places) == list(range(len(records)))
    by_place = Counter(place for _, place in places)
    assert min(by_place[name] for name in ("inbox", "redelivery", "quarantine")) > 5, by_place
    assert road.one("SELECT pg_version FROM pg_deposits WHERE pg_deposit_id = 'dep-honest'") == EVENTS - 50
    kept = road.rows("SELECT source_offset, convert_to(event_raw, 'UTF8') FROM pg_webhook_inbox")
    kept += road.rows("SELECT source_offset, raw FROM quarantined_events")
    assert all(bytes(raw) == taken[offset][0] for offset, raw in kept)
    # A generated column is not read when it is written: every row must be readable as jsonb later, too.
    assert road.one("SELECT count(event ->> 'id') FROM pg_webhook_inbox") == by_place["inbox"]


def test_a_redelivered_absurdity_does_nothing_more(road: Road) -> None:
    """The same road again, with a claim of its own: rows and effects stay as they are."""
    chance = Random(3)
    applier = road.applier(0)
    road.correlate(*(f"obj_{number}" for number in range(150)))
    taken = [
        (raw, envelope)
        for raw in (absurd.body(chance, number) for number in range(150))
        if (envelope := envelope_of(raw)) is not None and envelope.livemode
    ]
    count = len(taken)
    applier.apply([record(offset, applier.epoch(0), raw, envelope) for offset, (raw, envelope) in enumerate(taken)])
    effects = road.rows("SELECT dedupe_key FROM pg_outbox ORDER BY partition, seq")
    balances = road.rows("SELECT * FROM pg_user_balances ORDER BY 1")
    assert (len(effects) > 10, len(balances) > 0) == (True, True)
    applier.apply(
        [record(count + offset, applier.epoch(0), raw, envelope) for offset, (raw, envelope) in enumerate(taken)]
    )

    assert road.rows("SELECT dedupe_key FROM pg_outbox ORDER BY partition, seq") == effects
    assert road.rows("SELECT * FROM pg_user_balances ORDER BY 1") == balances
    places = road.rows(WHERE)
    assert sorted(offset for offset, _ in places) == list(range(2 * count))
