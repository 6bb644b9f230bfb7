"""What `tallyhook redrive` must not send: it says so, and the row stays as it is."""

import json
import re
import subprocess
import sys

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from psycopg import sql

from tallyhook import kafka
from tallyhook.postgres import connect
from tests.integration.operations.operated import (
    MERCHANT,
    PATIENCE_SECONDS,
    Operated,
    deposit_body,
)
from tests.integration.operations.set_aside import outcomes, put_dead_letter, row_id, set_aside_row
from tests.running import await_true

STATES = "SELECT state FROM quarantined_events WHERE event_id = %s ORDER BY id"
ENTRIES = "SELECT entry_key, amount_minor FROM pg_user_balance_entries WHERE event_id = %s"


def test_a_dead_letter_of_the_wrong_merchant_needs_the_right_setting(busy: Operated) -> None:
    """Without the setting, and with another merchant's, it is not let through; with the right one it is applied."""
    busy.correlate("dep_merchant")
    put_dead_letter(busy, deposit_body("evt_merchant", "dep_merchant", 1, "settled"), "envelope_merchant")
    row = row_id(busy, "dep_merchant")
    told = busy.json("redrive", "--id", row, code=1)
    assert outcomes(told) == [("evt_merchant", "unusable")]
    assert "set TALLYHOOK_INGRESS_MERCHANT_ID" in told["rows"][0]["why"]
    told = busy.json("redrive", "--id", row, code=1, TALLYHOOK_INGRESS_MERCHANT_ID="mer_2")
    assert outcomes(told) == [("evt_merchant", "unusable")]
    assert "is not TALLYHOOK_INGRESS_MERCHANT_ID" in told["rows"][0]["why"]
    assert busy.rows("SELECT attempts FROM quarantined_events WHERE id = %s", row) == [(1,)]
    busy.json("redrive", "--id", row, TALLYHOOK_INGRESS_MERCHANT_ID=MERCHANT)
    busy.await_rows([("redriven",)], STATES, "evt_merchant")
    assert busy.rows(ENTRIES, "evt_merchant") == [("deposit:dep_merchant:credit", 10_000)]


def test_what_cannot_be_sent_is_named_and_left(busy: Operated) -> None:
    """No JSON, a record that the door never took, a correlation, the other mode: exit code 1, rows untouched."""
    names = busy.names
    ((newest,),) = busy.rows("SELECT coalesce(max(id), 0) FROM quarantined_events")
    put_dead_letter(busy, b'{"data":{"object":{"id":"un_json"}}')
    put_dead_letter(
        busy, deposit_body("evt_un_test", "un_test", 1, "open").replace(b'"livemode": true', b'"livemode": 1')
    )
    busy.publish(names.state_changes, "un_foreign", deposit_body("evt_un_foreign", "un_foreign", 1, "settled"), [])
    busy.publish(names.deposit_correlations, "un_correlation", b"[]", [])
    query = "SELECT id FROM quarantined_events WHERE id > %s ORDER BY id"
    await_true(lambda: len(busy.rows(query, newest)) == 4, PATIENCE_SECONDS, "four rows")
    ids = [str(row[0]) for row in busy.rows(query, newest)]
    before = busy.rows("SELECT * FROM quarantined_events ORDER BY id")
    told = busy.json("redrive", *(f"--id={row_id}" for row_id in ids), code=1)
    whys = " | ".join(sorted(row["why"] for row in told["rows"]))
    assert re.fullmatch(
        r"it is a correlation .* \| its envelope is still unusable \(envelope_livemode.*\)"
        r" \| its envelope is still unusable \(envelope_not_json.*\) \| no header tells that the door took it.*",
        whys,
    )
    assert told["outcomes"] == {"unusable": 4}
    assert busy.rows("SELECT * FROM quarantined_events ORDER BY id") == before


def test_a_discarded_row_is_sent_only_when_that_is_asked_for(busy: Operated) -> None:
    """Named without the option it is a no; with it the row is open again and closed by the sink."""
    busy.correlate("dep_back")
    put_dead_letter(busy, deposit_body("evt_back", "dep_back", 1, "settled"), "envelope_merchant")
    row = row_id(busy, "dep_back")
    busy.json("quarantine", "resolve", row, "--discard", "--reason", "by mistake", "--actor", "nok")
    assert (
        busy.json("redrive", "--id", row, code=1, TALLYHOOK_INGRESS_MERCHANT_ID=MERCHANT)["rows"][0]["outcome"]
        == "discarded"
    )
    assert busy.rows(ENTRIES, "evt_back") == []
    busy.json("redrive", "--id", row, "--discarded", TALLYHOOK_INGRESS_MERCHANT_ID=MERCHANT)
    busy.await_rows([("redriven",)], STATES, "evt_back")
    assert busy.rows(ENTRIES, "evt_back") == [("deposit:dep_back:credit", 10_000)]
    ((note,),) = busy.rows("SELECT note FROM quarantined_events WHERE id = %s", row)
    assert note == "discarded: by mistake; opened again to be sent again; applied"


def test_an_event_that_was_taken_meanwhile_is_not_sent(busy: Operated) -> None:
    """Another delivery of it is in the inbox: the row is named with the way to close it."""
    busy.correlate("dep_twice")
    body = deposit_body("evt_twice", "dep_twice", 1, "settled")
    busy.deliver(body)
    busy.await_rows([("advanced",)], "SELECT verdict FROM pg_webhook_inbox WHERE event_id = 'evt_twice'")
    busy.set_aside([set_aside_row(busy, "evt_twice", "dep_twice", body, 0)])
    told = busy.json("redrive", "--id", row_id(busy, "dep_twice"), code=1)
    assert outcomes(told) == [("evt_twice", "in the inbox")]
    assert "quarantine resolve --accept" in told["rows"][0]["why"]
    busy.rows("DELETE FROM quarantined_events WHERE event_id = 'evt_twice' RETURNING id")


def test_a_row_that_is_discarded_at_the_same_moment_is_not_sent(busy: Operated) -> None:
    """Whoever comes second finds the row closed; the event stays without effect."""
    busy.correlate("dep_race")
    body = deposit_body("evt_race", "dep_race", 1, "settled")
    busy.set_aside([set_aside_row(busy, "evt_race", "dep_race", body, 1)])
    row = row_id(busy, "dep_race")
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tallyhook-redrive' AND wait_event_type = %s"
    )
    with connect(busy.settings.database, "test") as other, other.transaction():
        schema = sql.Identifier(busy.settings.installation.schema_name)
        close = sql.SQL("UPDATE {}.quarantined_events SET state = 'discarded' WHERE id = %s").format(schema)
        other.execute(close, (row,))
        process = subprocess.Popen(
            [sys.executable, "-m", "tallyhook", "redrive", "--id", row, "--json"],
            env=busy.variables(),
            stdout=subprocess.PIPE,
            text=True,
        )
        await_true(lambda: busy.rows(waiting, "Lock") == [(1,)], PATIENCE_SECONDS, "redrive to wait for the row")
    told, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert outcomes(json.loads(told)) == [("evt_race", "closed meanwhile")]
    assert busy.rows("SELECT state, attempts FROM quarantined_events WHERE id = %s", row) == [("discarded", 1)]
    keys = {m.key() for m in kafka.read_to_end(busy.settings.kafka, busy.names.events, timeout_seconds=30)}
    assert b"dep_race" not in keys


def test_what_the_broker_does_not_take_is_named_and_stays_open(busy: Operated) -> None:
    """A record above the topic's limit: exit code 1 with the broker's word; with a higher limit it is applied."""
    busy.correlate("dep_big")
    body = deposit_body("evt_big", "dep_big", 1, "open", unknown="x" * 8000)
    busy.set_aside([set_aside_row(busy, "evt_big", "dep_big", body, 2)])
    row = row_id(busy, "dep_big")
    set_record_limit(busy, "2000")
    try:
        told = busy.json("redrive", "--id", row, code=1)
    finally:
        set_record_limit(busy, "1000000")
    assert outcomes(told) == [("evt_big", "not confirmed")]
    assert "too large" in told["rows"][0]["why"]
    assert busy.rows("SELECT state FROM quarantined_events WHERE id = %s", row) == [("open",)]
    busy.json("redrive", "--id", row)
    busy.await_rows([("redriven",)], STATES, "evt_big")


def set_record_limit(installation: Operated, limit_bytes: str) -> None:
    """Sets max.message.bytes of the events topic and waits until the broker tells it."""
    client, topic = kafka.admin(installation.settings.kafka), installation.names.events
    entry = ConfigEntry("max.message.bytes", limit_bytes, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client.incremental_alter_configs([resource])[resource].result(PATIENCE_SECONDS)

    def told() -> bool:
        asked = ConfigResource(ResourceType.TOPIC, topic)
        found = client.describe_configs([asked])[asked].result(PATIENCE_SECONDS)
        return bool(found["max.message.bytes"].value == limit_bytes)

    await_true(told, PATIENCE_SECONDS, f"a record limit of {limit_bytes}")


def test_looking_changes_nothing(quiet: Operated) -> None:
    """--dry-run says what would be sent, within the limit, without a broker and without counting an attempt."""
    quiet.set_aside(
        [
            set_aside_row(quiet, f"evt_{n}", f"dep_{n}", deposit_body(f"evt_{n}", f"dep_{n}", 1, "open"), n)
            for n in range(3)
        ]
    )
    before = quiet.rows("SELECT * FROM quarantined_events ORDER BY id")
    looked = quiet.json("redrive", "--dry-run", "--limit", "2", TALLYHOOK_KAFKA_BOOTSTRAP="127.0.0.1:1")
    assert outcomes(looked) == [("evt_0", "would be sent"), ("evt_1", "would be sent")]
    assert (looked["dry_run"], looked["left"]) == (True, 1)
    assert quiet.rows("SELECT * FROM quarantined_events ORDER BY id") == before


def test_nothing_is_sent_by_accident(quiet: Operated) -> None:
    """Without a terminal it wants --yes or ids; unknown ids, a missing topic and a dead broker send nothing."""
    quiet.set_aside([set_aside_row(quiet, "evt_1", "dep_1", deposit_body("evt_1", "dep_1", 1, "open"), 0)])
    before = quiet.rows("SELECT * FROM quarantined_events")
    asked = quiet.command("redrive")
    assert (asked.returncode, "--yes" in asked.stderr) == (2, True)
    unknown = quiet.command("redrive", "--id", "1", "--id", "77")
    assert (unknown.returncode, "77" in unknown.stderr) == (1, True)
    missing = quiet.command("redrive", "--id", "1")
    assert (missing.returncode, "tallyhook topics show" in missing.stderr) == (1, True)
    dead = quiet.command(
        "redrive",
        "--id",
        "1",
        TALLYHOOK_KAFKA_BOOTSTRAP="127.0.0.1:1",
        TALLYHOOK_KAFKA_REQUEST_TIMEOUT_SECONDS="1",
    )
    assert (dead.returncode, "Kafka does not answer" in dead.stderr) == (1, True)
    assert quiet.rows("SELECT * FROM quarantined_events") == before
