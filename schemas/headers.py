"""Record headers: CloudEvents 1.0 in binary mode (`ce_...`), and the webhook's own three.

Source: CloudEvents Kafka protocol binding 1.0.2, section 3.2.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Header = tuple[str, str | bytes | None]

CONTENT_TYPE: Header = ("content-type", "application/json")
SPEC_VERSION: Header = ("ce_specversion", "1.0")

WEBHOOK_HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")


@dataclass(frozen=True, slots=True)
class EventHeaders:
    """What the door knows of an event, beside its bytes.

    Args:
        id: the event's id.
        type: the event's type.
        source: URI reference of the sender.
        subject: the object's id, which is also the record's key.
        time: created_at, text as sent.
        object_kind: data.object.object.
        status: data.object.status; empty where the object has none.
        version: data.object.version, 0 or more; None for objects without versions.
        merchant: account.merchant_id.
        sequence: the event's sequence.
        livemode: true for real money.
        received_at: when the door had the whole request (RFC 3339, UTC).
        origin: webhook, backfill or redrive.
        key_id: which key vouched for it; empty for backfilled events.
    """

    id: str
    type: str
    source: str
    subject: str
    time: str
    object_kind: str
    status: str
    version: int | None
    merchant: str
    sequence: int
    livemode: bool
    received_at: str
    origin: str
    key_id: str

    def encode(self) -> list[Header]:
        """As record headers, content type included."""
        headers: list[Header] = [
            SPEC_VERSION,
            ("ce_id", self.id),
            ("ce_type", self.type),
            ("ce_source", self.source),
            ("ce_subject", self.subject),
            ("ce_time", self.time),
            ("ce_objecttype", self.object_kind),
            ("ce_status", self.status),
            ("ce_merchant", self.merchant),
            ("ce_sequence", str(self.sequence)),
            ("ce_livemode", "true" if self.livemode else "false"),
            ("ce_receivedat", self.received_at),
            ("ce_origin", self.origin),
            ("ce_keyid", self.key_id),
            CONTENT_TYPE,
        ]
        if self.version is not None:
            headers.append(("ce_version", str(self.version)))
        return headers


class HeaderError(ValueError):
    """A record lacks a header or has one that cannot be read; the message names it."""


def decode(headers: Iterable[tuple[str, bytes | str | None]]) -> EventHeaders:
    """Reads the headers of a record of `events` or `state-changes`; raises HeaderError.

    The first of a repeated header counts, as it did at the door.
    """
    return decode_texts(texts(headers))


def decode_texts(found: Mapping[str, str]) -> EventHeaders:
    """The same for headers that were read with `texts` already."""

    def need(name: str) -> str:
        value = found.get(name)
        if value is None:
            raise HeaderError(f"header {name} is missing")
        return value

    def number(name: str) -> int:
        value = need(name)
        if not (value.isascii() and value.isdigit()) or len(value) > 19 or int(value) >= 1 << 63:
            raise HeaderError(f"header {name} is not a whole number below 2^63")
        return int(value)

    livemode = need("ce_livemode")
    if livemode not in ("true", "false"):
        raise HeaderError("header ce_livemode is neither true nor false")
    return EventHeaders(
        id=need("ce_id"),
        type=need("ce_type"),
        source=need("ce_source"),
        subject=need("ce_subject"),
        time=need("ce_time"),
        object_kind=need("ce_objecttype"),
        status=need("ce_status"),
        version=number("ce_version") if "ce_version" in found else None,
        merchant=need("ce_merchant"),
        sequence=number("ce_sequence"),
        livemode=livemode == "true",
        received_at=need("ce_receivedat"),
        origin=need("ce_origin"),
        key_id=need("ce_keyid"),
    )


def texts(headers: Iterable[tuple[str, bytes | str | None]]) -> dict[str, str]:
    """Headers as text by name, the first of each; raises HeaderError for bytes that are not UTF-8."""
    found: dict[str, str] = {}
    for name, value in headers:
        if name in found or value is None:
            continue
        try:
            found[name] = value if isinstance(value, str) else value.decode()
        except UnicodeDecodeError as failure:
            raise HeaderError(f"header {name} is not UTF-8") from failure
    return found


def verdict_headers(
    verdict: str, previous_version: int | None, previous_status: str | None, partition: int, offset: int
) -> Sequence[Header]:
    """What the stream adds: its verdict, the state before, and the delivery's identity (its place in `events`)."""
    return (
        ("ce_verdict", verdict),
        ("ce_previousversion", "" if previous_version is None else str(previous_version)),
        ("ce_previousstatus", previous_status or ""),
        ("ce_sourcepartition", str(partition)),
        ("ce_sourceoffset", str(offset)),
    )
