"""`tallyhook redrive` on a running stream and sink: what was set aside is tried once more, and counts once."""

import signal
import subprocess
import sys

from schemas.headers import texts
from tallyhook import kafka
from tests.integration.operations.operated import (
    PATIENCE_SECONDS,
    RECEIVED_AT,
    Operated,
    deposit_body,
)
from tests.integration.operations.set_aside import outcomes, put_dead_letter, row_id, set_aside_row
from tests.running import await_true

STATES = "SELECT state FROM quarantined_events WHERE event_id = %s ORDER BY id"
ENTRIES = "SELECT entry_key, amount_minor FROM pg_user_balance_entries WHERE event_id = %s"


def test_what_is_still_wrong_is_one_open_row_and_what_is_repaired_counts_once(busy: Operated) -> None:
    """A value that the database refuses: redriven twice in vain, then the check goes and it is applied once."""
    busy.correlate("dep_check")
    busy.rows("INSERT INTO pg_user_balances VALUES ('usr-dep_check', 5) RETURNING 1")
    only = "user_id <> 'usr-dep_check' OR balance_minor < 10"
    busy.connection.execute(f"ALTER TABLE pg_user_balances ADD CONSTRAINT no_more CHECK ({only})".encode())
    body = deposit_body("evt_check", "dep_check", 3, "settled")
    busy.deliver(body)
    first = row_id(busy, "dep_check")

    assert outcomes(busy.json("redrive", "--id", first)) == [("evt_check", "sent")]
    busy.await_rows([("redriven",), ("open",)], STATES, "evt_check")
    second = row_id(busy, "dep_check")
    assert outcomes(busy.json("redrive", "--event-id", "evt_check", "--yes")) == [("evt_check", "sent")]
    busy.await_rows([("redriven",), ("redriven",), ("open",)], STATES, "evt_check")
    kept = busy.rows(
        "SELECT raw, attempts, headers ->> 'ce_origin', headers ->> 'ce_receivedat', reason"
        " FROM quarantined_events WHERE event_id = 'evt_check' ORDER BY id"
    )
    assert [row[0] for row in kept] == [body] * 3
    assert kept[0][1] == 2
    assert kept[0][1] <= kept[1][1] <= kept[2][1]
    assert [row[2:] for row in kept] == [
        (origin, RECEIVED_AT, "database_refused") for origin in ("webhook", "redrive", "redrive")
    ]
    assert busy.rows(ENTRIES, "evt_check") == []

    busy.connection.execute("ALTER TABLE pg_user_balances DROP CONSTRAINT no_more")
    third = row_id(busy, "dep_check")
    assert len({first, second, third}) == 3
    busy.json("redrive", "--id", third)
    busy.json("redrive", "--id", third)  # before or after the first one was applied: it must not matter
    busy.await_rows([("redriven",)] * 3, STATES, "evt_check")
    assert outcomes(busy.json("redrive", "--id", third))[0][1] == "redriven"
    assert busy.rows(ENTRIES, "evt_check") == [("deposit:dep_check:credit", 10_000)]
    assert busy.rows("SELECT balance_minor FROM pg_user_balances WHERE user_id = 'usr-dep_check'") == [(10_005,)]
    inbox = "SELECT origin, verdict, received_at::text FROM pg_webhook_inbox WHERE event_id = 'evt_check'"
    assert busy.rows(inbox) == [("redrive", "advanced", "2026-05-01 10:00:00.123456+00")]
    effects = "SELECT dedupe_key FROM pg_outbox WHERE aggregateid = 'dep_check' AND topic = 'release_goods'"
    assert busy.rows(effects) == [("deposit:dep_check:release_goods",)]


def test_a_redriven_record_is_the_events_own(busy: Operated) -> None:
    """The same bytes under the object's key, each header once, the webhook's own among them; in the same partition."""
    busy.correlate("dep_same")
    body = deposit_body("evt_same", "dep_same", 1, "settled", amount_received_minor=1)
    busy.deliver(body)
    busy.json("redrive", "--id", row_id(busy, "dep_same"))
    records = [
        message
        for message in kafka.read_to_end(busy.settings.kafka, busy.names.events, timeout_seconds=30)
        if message.key() == b"dep_same"
    ]
    first, second = (texts(kafka.headers_of(record)) for record in records)
    assert second == first | {"ce_origin": "redrive"}
    assert len(kafka.headers_of(records[1])) == len(second)
    assert [record.value() for record in records] == [body, body]
    assert len({record.partition() for record in records}) == 1


def test_a_raised_limit_lets_the_event_through(busy: Operated) -> None:
    """payload_too_large: the sink starts anew with a higher limit, and redrive by reason applies it once."""
    busy.correlate("dep_long")
    text = "สลิปไม่ชัด " * 60
    busy.deliver(deposit_body("evt_long", "dep_long", 2, "rejected", rejection={"display_th": text}))
    row_id(busy, "dep_long")
    busy.restart("sink", TALLYHOOK_SINK_QUARANTINE_LIMIT="1000")
    told = busy.json(
        "redrive", "--reason", "payload_too_large", "--type", "deposit.rejected", "--stage", "sinks", "--yes"
    )
    assert outcomes(told) == [("evt_long", "sent")]
    busy.await_rows([("redriven",)], STATES, "evt_long")
    assert busy.rows("SELECT topic, payload ->> 'reason' FROM pg_outbox WHERE aggregateid = 'dep_long'") == [
        ("fail_order", text)
    ]


def test_a_dead_letter_without_an_id_is_closed_by_the_event_that_it_was(busy: Operated) -> None:
    """An id above the limit was not kept in the row; read again under a higher limit it is, and the row is closed."""
    long_id = "evt_" + "x" * 600
    busy.correlate("dep_idless")
    put_dead_letter(busy, deposit_body(long_id, "dep_idless", 1, "open"))
    row = row_id(busy, "dep_idless")
    assert busy.rows("SELECT event_id FROM quarantined_events WHERE id = %s", row) == [(None,)]
    told = busy.json("redrive", "--id", row, code=1)
    assert "still unusable (envelope_id" in told["rows"][0]["why"]
    busy.json("redrive", "--id", row, TALLYHOOK_INGRESS_MAX_ID_BYTES="1024")
    busy.await_rows([("redriven",)], STATES, long_id)
    assert busy.rows("SELECT object_id, verdict FROM pg_webhook_inbox WHERE event_id = %s", long_id) == [
        ("dep_idless", "advanced")
    ]


def test_many_rows_interrupted_and_resumed(busy: Operated) -> None:
    """Over several pages, stopped by Ctrl-C in the middle and run again: each event is applied once."""
    count = 230
    busy.correlate(*(f"dep_many_{number}" for number in range(count)))
    busy.set_aside(
        [
            set_aside_row(
                busy,
                f"evt_many_{number}",
                f"dep_many_{number}",
                deposit_body(f"evt_many_{number}", f"dep_many_{number}", 1, "settled"),
                1000 + number,
            )
            for number in range(count)
        ]
    )
    begun = "SELECT count(*) FROM quarantined_events WHERE event_id LIKE 'evt_many_%' AND attempts > 1"
    process = subprocess.Popen(
        [sys.executable, "-m", "tallyhook", "redrive", "--reason", "body_date", "--yes", "--rate", "20"],
        env=busy.variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    await_true(lambda: busy.rows(begun)[0][0] > 0, PATIENCE_SECONDS, "the first page")
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130, told
    assert busy.rows(begun)[0][0] < count

    again = busy.json("redrive", "--reason", "body_date", "--yes", "--rate", "10000")
    assert set(again["outcomes"]) <= {"sent", "closed meanwhile"}
    states = "SELECT state, count(*) FROM quarantined_events WHERE event_id LIKE 'evt_many_%' GROUP BY state"
    busy.await_rows([("redriven", count)], states)
    entries = "SELECT count(*), sum(amount_minor)::bigint FROM pg_user_balance_entries WHERE event_id LIKE 'evt_many_%'"
    assert busy.rows(entries) == [(count, count * 10_000)]
    assert busy.rows("SELECT count(*) FROM pg_outbox WHERE causation_id LIKE 'evt_many_%'") == [(2 * count,)]
    assert busy.json("redrive", "--reason", "body_date", "--yes") == {
        "dry_run": False,
        "outcomes": {},
        "left": 0,
        "rows": [],
    }
