"""A case from the life of webhook receivers: one poison event among two hundred."""

import json

import pytest

from tallyhook.kafka import watermarks
from tests.cases.shop import READ_SECONDS, Shop, deposit_body


@pytest.mark.case(12)
def test_case_12_one_poison_event_among_two_hundred(shop: Shop) -> None:
    """200 answers of 200, 199 credits, one row with the bytes as sent, positions past it; redrive finds only that."""
    deposits = [f"c12_{number}" for number in range(200)]
    shop.correlate(*deposits)
    bodies = [deposit_body(f"evt_{deposit}", deposit, 1, "settled") for deposit in deposits]
    poison = deposit_body("evt_c12_99", "c12_99", 1, "settled", metadata={"note": "NOTE"}).replace(
        b"NOTE", b"a\\u0000b"
    )
    bodies[99] = poison
    assert shop.post_at_once(bodies, connections=20) == [200] * 200

    good = [deposit for deposit in deposits if deposit != "c12_99"]
    assert len(shop.verdicts(*(f"evt_{deposit}" for deposit in good))) == 199
    assert shop.credits(*deposits) == dict.fromkeys(good, 50_000)
    query = "SELECT event_id, raw, reason, state FROM quarantined_events WHERE state = 'open'"
    shop.await_rows([("evt_c12_99", poison, "body_text", "open")], query)
    ((row_id, detail),) = shop.rows("SELECT id, detail FROM quarantined_events WHERE state = 'open'")
    assert "metadata.note" in detail

    topic = shop.names.state_changes
    ends = watermarks(shop.kafka, topic, range(8), READ_SECONDS)
    stored = dict(shop.rows("SELECT partition, next_offset FROM sink_offsets WHERE topic = %s", topic))
    assert stored == {partition: high for partition, (_, high) in ends.items()}

    looked = shop.command("redrive", "--dry-run", "--json")
    assert looked.returncode == 0, looked.stderr
    assert [(row["id"], row["event_id"]) for row in json.loads(looked.stdout)["rows"]] == [(row_id, "evt_c12_99")]
    assert shop.rows("SELECT attempts FROM quarantined_events WHERE id = %s", row_id) == [(1,)]


def test_a_poison_event_that_is_sent_again_is_one_open_row(shop: Shop) -> None:
    """It goes the whole road once more; the row before is closed, and the object's next event counts."""
    shop.correlate("q1")
    assert shop.post(deposit_body("evt_q1", "q1", 1, "settled", fee_total_minor=-1)) == [200]
    open_rows = "SELECT event_id, headers ->> 'ce_origin' FROM quarantined_events WHERE state = 'open'"
    shop.await_rows([("evt_q1", "webhook")], open_rows)
    sent = shop.command("redrive", "--yes")
    assert sent.returncode == 0, sent.stderr
    shop.await_rows([("evt_q1", "redrive")], open_rows)
    assert shop.post(deposit_body("evt_q1_next", "q1", 2, "settled")) == [200]
    shop.verdicts("evt_q1_next")
    assert shop.credits("q1") == {"q1": 50_000}
    assert shop.rows("SELECT state FROM quarantined_events WHERE event_id = 'evt_q1' ORDER BY id") == [
        ("redriven",),
        ("open",),
    ]
    shown = shop.command("quarantine", "list")
    assert (shown.returncode, "evt_q1" in shown.stdout) == (0, True)
