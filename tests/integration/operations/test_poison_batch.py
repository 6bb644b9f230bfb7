"""A batch of a thousand with three poison events, through the processes: set aside alone, repaired, counted once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallyhook import kafka
from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings
from tests.integration.operations.operated import PATIENCE_SECONDS, Operated, deposit_body, door_headers, operated
from tests.integration.operations.set_aside import outcomes
from tests.running import await_true

EVENTS = 1_000
TYPED, REFUSED, CONTRADICTING = 100, 500, 999
POISON = (TYPED, REFUSED, CONTRADICTING)
BIGINT_MAX = (1 << 63) - 1
APPLIED = "SELECT count(*), count(DISTINCT event_id) FROM pg_webhook_inbox WHERE processed_at IS NOT NULL"
OPEN = "SELECT event_id, reason, attempts FROM quarantined_events WHERE state = 'open' ORDER BY object_id"
STATES = "SELECT state FROM quarantined_events WHERE event_id = %s ORDER BY id"
pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def single(
    kafka_settings: KafkaSettings, database_settings: DatabaseSettings, installation: Installation, tmp_path: Path
) -> Iterator[Operated]:
    """One partition, so that all of it is one batch; the stream runs, the sink does not yet."""
    made = operated(kafka_settings, database_settings, installation, tmp_path, partitions=1)
    try:
        made.start("stream", TALLYHOOK_STREAM_SESSION_TIMEOUT_SECONDS="6")
        yield made
    finally:
        made.close()


def flag(claim_id: str, amount_minor: int) -> dict[str, object]:
    """An overpayment flag."""
    return {
        "claim_id": claim_id,
        "cause": "same_transfer_excess",
        "amount_minor": amount_minor,
        "slip_received_at": "2026-05-01T09:00:00Z",
        "status": "open",
        "action_required": "contact_support",
    }


def body(number: int, **members: object) -> bytes:
    """The settled event of one deposit."""
    return deposit_body(f"evt_{number}", f"dep_{number:03}", 3, "settled", **members)


def deliver(installation: Operated, bodies: list[bytes]) -> None:
    """Writes events to `events` as the door does, all of them before any is waited for."""
    for one in bodies:
        event = json.loads(one)
        key = event["data"]["object"]["id"]
        installation.client.produce(installation.names.events, one, key, headers=door_headers(event))
    assert installation.client.flush(PATIENCE_SECONDS) == 0


def waiting(installation: Operated) -> int:
    """How many state changes there are."""
    ends = kafka.watermarks(installation.settings.kafka, installation.names.state_changes, (0,), 20)
    return ends[0][1]


def test_three_poison_events_of_a_thousand_stop_nobody_and_count_once_when_repaired(single: Operated) -> None:
    """A date that is none, a sum beyond bigint, a claim seen otherwise: 997 applied, 3 set aside, then all 1,000."""
    single.correlate(*(f"dep_{number:03}" for number in range(EVENTS)))
    rich = f"usr-dep_{REFUSED:03}"
    single.rows("INSERT INTO pg_user_balances VALUES (%s, %s) RETURNING 1", rich, BIGINT_MAX - 5)
    bodies = [body(number) for number in range(EVENTS)]
    bodies[0] = body(0, overpayment=flag("clm_1", 500))
    bodies[TYPED] = body(TYPED, clearing_available_at="2026-02-30T00:00:00Z")
    bodies[CONTRADICTING] = body(CONTRADICTING, overpayment=flag("clm_1", 501))
    deliver(single, bodies)
    await_true(lambda: waiting(single) == EVENTS, PATIENCE_SECONDS, "a thousand state changes")

    single.start("sink")
    sink = single.stages["sink"]
    pid = sink.pid
    single.await_rows([(997, 997)], APPLIED)
    reasons = dict(zip(POISON, ("body_date", "database_refused", "overpayment_collision"), strict=True))
    single.await_rows([(f"evt_{number}", reason, 1) for number, reason in reasons.items()], OPEN)
    assert_kept(single, bodies)
    assert_credited(single, EVENTS - len(POISON))

    # The partition goes on, and so do the objects of the poison events.
    later = [deposit_body(f"evt_later_{n}", f"dep_{n:03}", 2, "open") for n in POISON]
    deliver(single, later)
    single.await_rows([(1000, 1000)], APPLIED)

    # Nothing was repaired yet: sent again in vain, each is set aside again, as one open row.
    told = single.json("redrive", "--yes")
    assert outcomes(told) == [(f"evt_{number}", "sent") for number in POISON]
    for number in POISON:
        single.await_rows([("redriven",), ("open",)], STATES, f"evt_{number}")
    assert_kept(single, bodies)
    assert_credited(single, EVENTS - len(POISON))

    # The balance is put right by hand and the event redriven; the sender corrects the other two, under their own ids.
    single.rows("DELETE FROM pg_user_balances WHERE user_id = %s RETURNING 1", rich)
    assert outcomes(single.json("redrive", "--reason", "database_refused", "--yes")) == [(f"evt_{REFUSED}", "sent")]
    deliver(single, [body(TYPED), body(CONTRADICTING, overpayment=flag("clm_2", 501))])
    for number in POISON:
        single.await_rows([("redriven",), ("redriven",)], STATES, f"evt_{number}")
    assert single.json("redrive", "--yes") == {"rows": [], "dry_run": False, "outcomes": {}, "left": 0}
    assert single.rows(APPLIED) == [(1003, 1003)]
    assert_credited(single, EVENTS)
    claims = "SELECT claim_id, pg_deposit_id, amount_minor FROM pg_deposit_overpayment_flags ORDER BY 1"
    assert single.rows(claims) == [("clm_1", "dep_000", 500), ("clm_2", f"dep_{CONTRADICTING:03}", 501)]
    assert sink.pid == pid
    assert sink.not_ready() == []
    assert single.json("audit")["clean"] is True


def assert_kept(installation: Operated, bodies: list[bytes]) -> None:
    """The open rows have the bytes as they were delivered, and the headers that the door gave."""
    kept = "SELECT raw, headers ->> 'ce_id', headers ->> 'ce_keyid', headers ->> 'webhook-signature'"
    rows = installation.rows(f"{kept} FROM quarantined_events WHERE state = 'open' ORDER BY object_id")
    assert rows == [(bodies[number], f"evt_{number}", "k1", "v1a,AA==") for number in POISON]


def assert_credited(installation: Operated, deposits: int) -> None:
    """So many deposits were credited, each once, and their goods released once."""
    entries = "SELECT count(*), count(DISTINCT entry_key), sum(amount_minor)::bigint FROM pg_user_balance_entries"
    assert installation.rows(entries) == [(deposits, deposits, deposits * 10_000)]
    goods = "SELECT count(*), count(DISTINCT aggregateid) FROM pg_outbox WHERE topic = 'release_goods'"
    assert installation.rows(goods) == [(deposits, deposits)]
