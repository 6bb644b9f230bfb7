"""Records of `state-changes` as they come, and arrivals: what the sink knows of each before it asks the database."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from confluent_kafka import Message

from schemas.headers import EventHeaders, HeaderError, decode_texts, texts
from schemas.topics import TopicNames
from sinks.contents import Content, read_content
from sinks.domain.decide import handler_for
from sinks.domain.decision import Refusal

UNKNOWN_MOMENT = datetime.fromtimestamp(0, UTC)

ORIGINS = frozenset({"webhook", "backfill", "redrive"})

RecordHeaders = Sequence[tuple[str, bytes | str | None]]


def headers_of(message: Message) -> RecordHeaders:
    """A record's headers in order; none are an empty list."""
    headers = message.headers() or []
    return list(headers.items()) if isinstance(headers, dict) else headers


@dataclass(frozen=True, slots=True)
class SinkRecord:
    """One record of `state-changes`.

    Args:
        epoch: the claim under which it was read (see `sinks.fence`); a record of another claim is refused.
        value: the signed bytes.
        headers: the record's headers in order, repeated ones too.
    """

    partition: int
    offset: int
    epoch: int
    value: bytes
    headers: RecordHeaders


@dataclass(frozen=True, slots=True)
class Source:
    """Where a delivery came from; its identity: a record with the same source is the same delivery read again."""

    topic: str
    partition: int
    offset: int


@dataclass(slots=True)
class Arrival:
    """One delivery on its way through a batch.

    Args:
        partition, offset: its place in `state-changes`; the offset is None for an event that was parked.
        epoch: the claim under which it was read.
        source: its place in `events`; that in `state-changes` where the headers do not tell.
        received_at: when the door had it; the start of 1970 where the headers do not tell.
        content: None when there is no header to read it by, when it is refused, or when its kind has no rules.
        refusal: why it is to be set aside, unless it was seen before.
        foreign: the headers cannot be trusted, so that not even "seen before" can be told.
        arrival_seq: its number in the inbox, for an event that was parked.
    """

    partition: int
    offset: int | None
    epoch: int
    raw: bytes
    record_headers: RecordHeaders
    source: Source
    headers: EventHeaders | None = None
    received_at: datetime = UNKNOWN_MOMENT
    content: Content | None = None
    refusal: Refusal | None = None
    foreign: bool = False
    arrival_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """Turns records into arrivals; knows the installation's mode and topics, and keeps nothing.

    Args:
        names: the installation's topics.
        livemode: the mode this installation works for.
    """

    names: TopicNames
    livemode: bool

    def read_all(self, records: Iterable[SinkRecord]) -> list[Arrival]:
        """Each record's arrival, in order; never raises for what is in a record."""
        return [self.read(record) for record in records]

    def read(self, record: SinkRecord) -> Arrival:
        """Decodes and checks one record."""
        arrival = Arrival(
            record.partition,
            record.offset,
            record.epoch,
            record.value,
            record.headers,
            Source(self.names.state_changes, record.partition, record.offset),
        )
        try:
            found = texts(record.headers)
            headers = decode_texts(found)
            partition, offset = _position(found, "ce_sourcepartition"), _position(found, "ce_sourceoffset")
            received_at = _checked(headers)
        except HeaderError as failure:
            arrival.refusal, arrival.foreign = Refusal("record_headers", str(failure)), True
            return arrival
        arrival.headers, arrival.received_at = headers, received_at
        arrival.source = Source(self.names.events, partition, offset)
        if headers.livemode is not self.livemode:
            arrival.refusal = Refusal("wrong_livemode", f"ce_livemode is {str(headers.livemode).lower()}")
            return arrival
        read_body(arrival, headers)
        return arrival


def read_body(arrival: Arrival, headers: EventHeaders) -> None:
    """Reads and checks the bytes; the outcome is the arrival's content, or its refusal."""
    content = read_content(arrival.raw, headers, handler_for(headers.object_kind))
    if isinstance(content, Refusal):
        arrival.refusal, arrival.foreign = content, content.reason == "record_headers"
    else:
        arrival.content = content


def _position(found: dict[str, str], name: str) -> int:
    value = found.get(name, "")
    if not (value.isascii() and value.isdigit()) or len(value) > 18:
        raise HeaderError(f"header {name} is not a position")
    return int(value)


def _checked(headers: EventHeaders) -> datetime:
    """The moment of receipt; raises HeaderError for what the inbox could not keep."""
    kept = (headers.id, headers.type, headers.subject, headers.object_kind, headers.merchant, headers.key_id)
    if any("\0" in value for value in kept):
        raise HeaderError("a header has a NUL")
    if headers.origin not in ORIGINS:
        raise HeaderError("header ce_origin is not webhook, backfill or redrive")
    try:
        moment = datetime.fromisoformat(headers.received_at)
    except ValueError as failure:
        raise HeaderError("header ce_receivedat is not a date-time") from failure
    if moment.tzinfo is None or not 2000 <= moment.year < 9999:
        raise HeaderError("header ce_receivedat has no time zone or lies out of range")
    return moment.astimezone(UTC)
