"""How much of a record is left for the body."""

import pytest

from ingress.envelope import BadEnvelope, Envelope, Fields
from ingress.messages import Head, Request
from ingress.public_keys import parse_key
from ingress.records import Receipt, Record, dead_letter, event_record
from ingress.schemes import Vouched
from ingress.topics import KnownTopics, record_overhead_bytes
from schemas.door import MAX_PROOF_BYTES
from schemas.headers import WEBHOOK_HEADERS, verdict_headers
from tallyhook.gateway.signing import SigningKey

TRACE = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_the_smallest_limit_counts() -> None:
    """Whichever topic has it; Kafka's default where none is told; never less than nothing."""
    known = KnownTopics(test_events=True, record_limits_bytes={"a.events": 300_000, "a.state-changes": 100_000})

    assert (known.record_limit_bytes, known.body_limit_bytes(16_384)) == (100_000, 83_616)
    assert KnownTopics(test_events=True, record_limits_bytes={}).record_limit_bytes == 1_048_588
    assert KnownTopics(test_events=True, record_limits_bytes={"a": 1000}).body_limit_bytes(16_384) == 0


@pytest.mark.parametrize("max_id_bytes", [16, 512, 597, 598, 4096])
def test_the_largest_record_fits_also_behind_the_stream(max_id_bytes: int) -> None:
    """Every text as long as it may be, and what the stream adds: all of it stays within what is kept free."""
    longest = "x" * max_id_bytes
    proof = dict.fromkeys(WEBHOOK_HEADERS, longest.encode()) | {"webhook-signature": b"s" * MAX_PROOF_BYTES}
    pairs = [(name.encode(), value) for name, value in proof.items()] + [(b"traceparent", TRACE)]
    key = parse_key(f"{'k' * 64}={SigningKey(bytes(range(32))).public_text()}", "here")
    request = Request(Head("POST", "/webhooks", tuple(pairs)), b"")
    receipt = Receipt(request, Vouched(key, longest), WEBHOOK_HEADERS, "2026-01-02T03:04:05.123456Z")
    number = (1 << 63) - 1
    texts = dict.fromkeys(("id", "type", "merchant", "created_at", "object_id", "kind", "status"), longest)
    envelope = Envelope(livemode=True, sequence=number, version=number, **texts)
    bad = BadEnvelope("envelope_created_at", "d" * 200, Fields(livemode=False, sequence=number, **texts))

    event = event_record("t", receipt, envelope, source="/" + "s" * 511)
    letter = dead_letter("t", receipt, bad, max_id_bytes=max_id_bytes)

    added = sum(
        len(name) + len(str(value)) for name, value in verdict_headers("redelivered", number, longest, 999, number)
    )
    for record, more in ((event, added), (letter, 0)):
        assert size(record) + more + 200 <= record_overhead_bytes(max_id_bytes)
    assert record_overhead_bytes(512) == 16_384


def size(record: Record) -> int:
    """Bytes of key and headers; each header costs some for its lengths."""
    headers = sum(len(name) + len(value or b"") + 6 for name, value in record.headers)
    return len(record.key or b"") + headers
