"""Rows in COPY's binary format: the signed bytes go from Kafka to PostgreSQL without being parsed again.

Source: PostgreSQL's manual, "COPY", section "Binary Format"; timestamptz counts microseconds since 2000-01-01.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from schemas.effects import BalanceEntry
from schemas.events import DEPOSIT_KIND, WITHDRAWAL_KIND
from sinks.plan import EntryRow, InboxRow, OutboxRow

_HEAD = b"PGCOPY\n\xff\r\n\x00" + struct.pack("!ii", 0, 0)
_TAIL = struct.pack("!h", -1)
_NULL = struct.pack("!i", -1)
_EPOCH_SECONDS = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
_INBOX_COLUMNS = struct.pack("!h", 19)
_OUTBOX_COLUMNS = struct.pack("!h", 11)

_length: Callable[[int], bytes] = struct.Struct("!i").pack
_int8: Callable[[int, int], bytes] = struct.Struct("!iq").pack
_int4: Callable[[int, int], bytes] = struct.Struct("!ii").pack
_encode = msgspec.json.Encoder().encode


def inbox(rows: Iterable[InboxRow], now: datetime) -> bytes:
    """The new events; `now` is when those that are not parked count as processed."""
    processed_at = _moment(now)
    parts = [_HEAD]
    for row in rows:
        arrival, headers = row.arrival, row.headers
        parts += (
            _INBOX_COLUMNS,
            _text(headers.id),
            _text(headers.type),
            _bytes(arrival.raw),
            _moment(arrival.received_at),
            _NULL if row.parked else processed_at,
            _text(row.parked) if row.parked else _NULL,
            _text(headers.subject),
            _text(headers.object_kind),
            _NULL if headers.version is None else _int8(8, headers.version),
            _text(headers.merchant),
            _int8(8, headers.sequence),
            _int4(4, arrival.partition),
            _int8(8, row.arrival_seq),
            _int4(4, arrival.source.partition),
            _int8(8, arrival.source.offset),
            _text(row.verdict),
            _NULL if row.reason is None else _text(row.reason),
            _text(headers.key_id),
            _text(headers.origin),
        )
    parts.append(_TAIL)
    return b"".join(parts)


def outbox(rows: Sequence[OutboxRow]) -> bytes:
    """Effects and balance entries; each entry's balance must be known by now."""
    parts = [_HEAD]
    for row in rows:
        name = _text(row.name)
        payload = row.payload if isinstance(row.payload, bytes) else _entry_payload(row.payload)
        parts += (
            _OUTBOX_COLUMNS,
            _int4(4, row.arrival.partition),
            _int8(8, row.seq),
            _AGGREGATE_TYPES[row.headers.object_kind],
            _text(row.headers.subject),
            name,
            name,
            _jsonb(payload),
            _text(row.dedupe_key),
            _text(row.headers.id),
            _int8(8, row.version),
            _moment(row.arrival.received_at),
        )
    parts.append(_TAIL)
    return b"".join(parts)


def _entry_payload(row: EntryRow) -> bytes:
    draft = row.draft
    return _encode(
        BalanceEntry(
            draft.entry_key,
            draft.user_id,
            draft.amount_minor,
            row.balance_after_minor,
            row.pg_deposit_id,
            row.our_order_id,
        )
    )


def _text(value: str) -> bytes:
    raw = value.encode()
    return _length(len(raw)) + raw


def _bytes(raw: bytes) -> bytes:
    return _length(len(raw)) + raw


def _jsonb(raw: bytes) -> bytes:
    # The leading 1 is the version of jsonb's binary form.
    return _length(len(raw) + 1) + b"\x01" + raw


def _moment(value: datetime) -> bytes:
    return _int8(8, round((value.timestamp() - _EPOCH_SECONDS) * 1_000_000))


_AGGREGATE_TYPES: Mapping[str, bytes] = {DEPOSIT_KIND: _text("deposit"), WITHDRAWAL_KIND: _text("withdrawal")}
"""The kinds that have effects, as Debezium's column names them."""
