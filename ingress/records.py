"""From a verified request to the record that is published: an event, or a dead letter with its reason."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ingress.envelope import BadEnvelope, Envelope, Fields, is_number, is_text
from ingress.messages import Request
from ingress.schemes import Vouched
from schemas.headers import EventHeaders, Header
from schemas.reasons import Reason

_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class Record:
    """What goes to Kafka; records of one key keep their order.

    Args:
        message_id: the webhook's id, or the event's where the scheme has none; None where neither is known.
        reason: why it is a dead letter, None for an event.
    """

    topic: str
    key: bytes | None
    value: bytes
    headers: Sequence[Header]
    message_id: str | None = None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """A verified request, with what the door adds to it.

    Args:
        vouched: who vouches for it.
        proof_headers: names of the headers that prove it, in lower case.
        received_at: when it was whole (RFC 3339, UTC).
    """

    request: Request
    vouched: Vouched
    proof_headers: Sequence[str]
    received_at: str


def event_headers(envelope: Envelope, *, source: str, received_at: str, origin: str, key_id: str) -> list[Header]:
    """The headers of an event's record, whoever publishes it.

    Args:
        origin: webhook, backfill or redrive.
        key_id: which key vouched for it; empty for backfilled events.
    """
    return EventHeaders(
        id=envelope.id,
        type=envelope.type,
        source=source,
        subject=envelope.object_id,
        time=envelope.created_at,
        object_kind=envelope.kind,
        status=envelope.status,
        version=envelope.version,
        merchant=envelope.merchant,
        sequence=envelope.sequence,
        livemode=envelope.livemode,
        received_at=received_at,
        origin=origin,
        key_id=key_id,
    ).encode()


def event_record(topic: str, receipt: Receipt, envelope: Envelope, *, source: str) -> Record:
    """The event's bytes as they were signed, under its object's id."""
    headers = event_headers(
        envelope, source=source, received_at=receipt.received_at, origin="webhook", key_id=receipt.vouched.key.id
    )
    headers += carried_headers(receipt)
    message_id = receipt.vouched.message_id or envelope.id
    return Record(topic, envelope.object_id.encode(), receipt.request.body, headers, message_id)


def dead_letter(topic: str, receipt: Receipt, bad: BadEnvelope, *, max_id_bytes: int) -> Record:
    """The same bytes with the reason, under the object's id, else the event's, else no key."""
    headers: list[Header] = [
        ("ce_stage", "ingress"),
        ("ce_reason", bad.reason),
        ("ce_detail", bad.detail),
        ("ce_receivedat", receipt.received_at),
        ("ce_origin", "webhook"),
        ("ce_keyid", receipt.vouched.key.id),
    ]
    fields = bad.fields
    texts = {"ce_id": fields.id, "ce_type": fields.type, "ce_merchant": fields.merchant, "ce_subject": fields.object_id}
    headers += [(name, value) for name, value in texts.items() if is_text(value, max_id_bytes)]
    if is_number(fields.sequence):
        headers.append(("ce_sequence", str(fields.sequence)))
    if isinstance(fields.livemode, bool):
        headers.append(("ce_livemode", "true" if fields.livemode else "false"))
    headers += carried_headers(receipt)
    key = next((value.encode() for value in (fields.object_id, fields.id) if is_text(value, max_id_bytes)), None)
    message_id = receipt.vouched.message_id or (fields.id if is_text(fields.id, max_id_bytes) else None)
    return Record(topic, key, receipt.request.body, headers, message_id, bad.reason)


def carried_headers(receipt: Receipt) -> list[Header]:
    """The headers that prove the request, and traceparent where it is one (W3C Trace Context, section 3.2)."""
    head = receipt.request.head
    carried: list[Header] = []
    for name in receipt.proof_headers:
        carried += [(name, value) for value in head.all(name.encode("ascii"))]
    traces = head.all(b"traceparent")
    if len(traces) == 1 and _TRACEPARENT.fullmatch(traces[0]):
        carried.append(("traceparent", traces[0]))
    return carried


def fields_of(envelope: Envelope) -> Fields:
    """A sound envelope seen as fields, for a dead letter whose reason lies elsewhere."""
    return Fields(
        id=envelope.id,
        type=envelope.type,
        livemode=envelope.livemode,
        merchant=envelope.merchant,
        sequence=envelope.sequence,
        created_at=envelope.created_at,
        object_id=envelope.object_id,
        kind=envelope.kind,
        version=envelope.version,
        status=envelope.status,
    )
