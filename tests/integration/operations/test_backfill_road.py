"""A withheld event comes by backfill: the gap closes by itself, and everything counts once."""

import json

from tests.integration.operations.operated import Operated, deposit_body
from tests.integration.operations.test_backfill import backfill
from tests.integration.operations.tiny_gateway import TinyGateway

OPEN = "SELECT first_sequence, last_sequence FROM sequence_gaps WHERE merchant_id = %s AND state = 'open' ORDER BY 1"


def numbered(sequence: int, deposit: str, version: int, status: str) -> bytes:
    """An event of another merchant than the other tests' in this installation."""
    event = json.loads(deposit_body(f"evt_road_{sequence}", deposit, version, status))
    return json.dumps(event | {"sequence": sequence, "account": {"merchant_id": "mer_road"}}).encode()


def test_a_withheld_event_is_fetched_and_counts_once(busy: Operated, gateway: TinyGateway) -> None:
    """Delivered: 1, 3, 6. Withheld: 2 (the settlement). A test event: 4. Not listed: 5."""
    busy.correlate("dep_road_1", "dep_road_2")
    bodies = {
        1: numbered(1, "dep_road_1", 1, "open"),
        2: numbered(2, "dep_road_1", 2, "settled"),
        3: numbered(3, "dep_road_2", 1, "open"),
        4: numbered(4, "dep_road_2", 2, "open").replace(b'"livemode": true', b'"livemode": false'),
        6: numbered(6, "dep_road_2", 3, "settled"),
    }
    gateway.events = bodies
    for number in (1, 3, 6):
        busy.deliver(bodies[number])
        busy.await_rows([(number,)], "SELECT highest_seen FROM sequence_heads WHERE merchant_id = %s", "mer_road")
    busy.await_rows([(2, 2), (4, 5)], OPEN, "mer_road")

    told = backfill(busy, gateway, "--gaps", "--merchant", "mer_road")
    assert told["counts"] == {"published": 2, "unlisted": 1}
    busy.await_rows([], OPEN, "mer_road")
    busy.await_rows(
        [("backfill", "advanced")], "SELECT origin, verdict FROM pg_webhook_inbox WHERE event_id = %s", "evt_road_2"
    )
    assert busy.rows("SELECT count(*) FROM pg_webhook_inbox WHERE event_id = 'evt_road_4'") == [(0,)]
    credited = "SELECT entry_key FROM pg_user_balance_entries WHERE event_id LIKE 'evt_road_%' ORDER BY 1"
    assert busy.rows(credited) == [("deposit:dep_road_1:credit",), ("deposit:dep_road_2:credit",)]
    assert busy.json("gaps", "--merchant", "mer_road")["open"] == {"ranges": 0, "numbers": 0}

    # Delivered late all the same, and fetched once more: it is known.
    busy.deliver(bodies[2])
    told = backfill(busy, gateway, "--since-sequence", "0", "--merchant", "mer_road")
    assert told["counts"]["in the inbox"] == 4
    busy.await_rows([(1,)], "SELECT count(*) FROM redeliveries WHERE event_id = %s", "evt_road_2")
    assert busy.rows(credited) == [("deposit:dep_road_1:credit",), ("deposit:dep_road_2:credit",)]
