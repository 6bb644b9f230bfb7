"""Rows of the quarantine as tests make them and read them."""

import json
from typing import Any

import pytest
from nacl.signing import SigningKey

from ingress.envelope import BadEnvelope, read
from ingress.messages import Head, Request
from ingress.public_keys import PublicKey
from ingress.records import Receipt, dead_letter
from ingress.schemes import Vouched
from sinks.quarantine import QuarantinedRow
from sinks.records import Source
from tests.integration.operations.operated import (
    PATIENCE_SECONDS,
    RECEIVED_AT,
    Operated,
    door_headers,
)
from tests.running import await_true


def row_id(installation: Operated, object_id: str, state: str = "open") -> str:
    """The only row of an object in a state, once it is there."""
    query = "SELECT id FROM quarantined_events WHERE object_id = %s AND state = %s"
    await_true(lambda: len(installation.rows(query, object_id, state)) == 1, PATIENCE_SECONDS, f"a row of {object_id}")
    return str(installation.rows(query, object_id, state)[0][0])


def outcomes(told: dict[str, Any]) -> list[tuple[str, str]]:
    """Event and fate of each row."""
    return [(row["event_id"], row["outcome"]) for row in told["rows"]]


def put_dead_letter(installation: Operated, body: bytes, reason: str | None = None) -> None:
    """Writes a dead letter as the door does; with a reason, of an event whose envelope is sound."""
    try:
        read(body, max_id_bytes=512)
    except BadEnvelope as failure:
        bad = failure
    else:
        assert reason == "envelope_merchant"
        event = json.loads(body)
        with pytest.raises(BadEnvelope) as caught:
            read(json.dumps(event | {"account": {"merchant_id": 5}}).encode(), max_id_bytes=512)
        bad = BadEnvelope("envelope_merchant", "not the merchant of endpoint default", caught.value.fields)
    head = Head("POST", "/webhooks", ((b"webhook-id", b"msg_1"), (b"webhook-timestamp", b"1777630000")))
    vouched = Vouched(PublicKey("k1", SigningKey.generate().verify_key), "msg_1")
    receipt = Receipt(Request(head, body), vouched, ("webhook-id", "webhook-timestamp"), RECEIVED_AT)
    record = dead_letter(installation.names.dead_letters, receipt, bad, max_id_bytes=512)
    key = None if record.key is None else record.key.decode()
    installation.publish(record.topic, key, record.value, record.headers)


def set_aside_row(installation: Operated, event_id: str, object_id: str, body: bytes, offset: int) -> QuarantinedRow:
    """A row of an event that the door had taken."""
    headers = door_headers(json.loads(body))
    place = Source(installation.names.events, 9, offset)
    return QuarantinedRow("sinks", "body_date", "set aside by the test", event_id, object_id, body, headers, place)
