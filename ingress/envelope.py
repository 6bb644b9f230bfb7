"""The envelope: the few members of an event that decide where its bytes go. Nothing deeper is judged here.

The typed reader is fast and refuses a lone surrogate wherever it stands; then the standard library's reader, which
takes it, decides whether the envelope itself is sound.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeGuard

import msgspec

from schemas.reasons import Reason

ORDER_KINDS = frozenset({"deposit_order", "withdrawal_order"})
MAX_NUMBER = (1 << 63) - 1
_NONE = msgspec.Raw()


class _Account(msgspec.Struct, gc=False):
    merchant_id: msgspec.Raw = _NONE


class _Object(msgspec.Struct, gc=False):
    id: msgspec.Raw = _NONE
    object: msgspec.Raw = _NONE
    version: msgspec.Raw = _NONE
    status: msgspec.Raw = _NONE


class _Data(msgspec.Struct, gc=False):
    object: _Object


class _Event(msgspec.Struct, gc=False):
    account: _Account
    data: _Data
    id: msgspec.Raw = _NONE
    type: msgspec.Raw = _NONE
    livemode: msgspec.Raw = _NONE
    sequence: msgspec.Raw = _NONE
    created_at: msgspec.Raw = _NONE


@dataclass(frozen=True, slots=True)
class Envelope:
    """A sound envelope.

    Args:
        id: the event's id.
        type: the event's type.
        livemode: true for real money.
        merchant: account.merchant_id.
        sequence: 0 to 2^63-1.
        created_at: text as sent.
        object_id: data.object.id, the key of every record of this object.
        kind: data.object.object.
        version: 0 to 2^63-1; None where the object has none.
        status: empty where the object has none.
    """

    id: str
    type: str
    livemode: bool
    merchant: str
    sequence: int
    created_at: str
    object_id: str
    kind: str
    version: int | None
    status: str


@dataclass(frozen=True, slots=True)
class Fields:
    """The members as they were found, of whatever JSON type; None where absent, null or unreadable."""

    id: object = None
    type: object = None
    livemode: object = None
    merchant: object = None
    sequence: object = None
    created_at: object = None
    object_id: object = None
    kind: object = None
    version: object = None
    status: object = None


class BadEnvelope(Exception):
    """An authentic event that cannot be routed.

    Args:
        reason: the code that goes with the dead letter.
        detail: what is wrong, without the sender's values.
        fields: what could be read.
    """

    def __init__(self, reason: Reason, detail: str, fields: Fields) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail, self.fields = reason, detail, fields


def read(body: bytes, *, max_id_bytes: int) -> Envelope:
    """Reads the envelope of an event; raises BadEnvelope with the first thing that is wrong."""
    return _judge(_fields(body), max_id_bytes)


def is_text(value: object, max_bytes: int) -> TypeGuard[str]:
    """Whether a value can be a record header and a column: not empty, bounded, without control characters."""
    if not isinstance(value, str) or not value or len(value) > max_bytes:
        return False
    if any(character < " " or character == "\x7f" for character in value):
        return False
    try:
        return len(value.encode("utf-8")) <= max_bytes
    except UnicodeEncodeError:  # a lone surrogate
        return False


def is_number(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number of 0 to 2^63-1; true and false are none, and neither is 1.0."""
    return type(value) is int and 0 <= value <= MAX_NUMBER


def _judge(fields: Fields, max_bytes: int) -> Envelope:
    def bad(reason: Reason, detail: str) -> NoReturn:
        raise BadEnvelope(reason, detail, fields)

    text = f"is not a text of 1 to {max_bytes} bytes without control characters"
    if not is_text(fields.id, max_bytes):
        bad("envelope_id", f"id {text}")
    if not is_text(fields.type, max_bytes):
        bad("envelope_type", f"type {text}")
    if not isinstance(fields.livemode, bool):
        bad("envelope_livemode", "livemode is neither true nor false")
    if not is_text(fields.merchant, max_bytes):
        bad("envelope_merchant", f"account.merchant_id {text}")
    if not is_number(fields.sequence):
        bad("envelope_sequence", "sequence is not a whole number of 0 to 2^63-1")
    if not is_text(fields.created_at, max_bytes):
        bad("envelope_created_at", f"created_at {text}")
    if not is_text(fields.object_id, max_bytes):
        bad("envelope_object_id", f"data.object.id {text}")
    if not is_text(fields.kind, max_bytes):
        bad("envelope_object_kind", f"data.object.object {text}")
    version, status = _version_and_status(fields, max_bytes)
    return Envelope(
        id=fields.id,
        type=fields.type,
        livemode=fields.livemode,
        merchant=fields.merchant,
        sequence=fields.sequence,
        created_at=fields.created_at,
        object_id=fields.object_id,
        kind=fields.kind,
        version=version,
        status=status,
    )


def _version_and_status(fields: Fields, max_bytes: int) -> tuple[int | None, str]:
    """An order needs both; other kinds may lack either, and null says the same as absence."""
    order = fields.kind in ORDER_KINDS
    if fields.version is None and not order:
        version = None
    elif is_number(fields.version):
        version = fields.version
    else:
        raise BadEnvelope("envelope_version", "data.object.version is not a whole number of 0 to 2^63-1", fields)
    if fields.status is None and not order:
        return version, ""
    if not is_text(fields.status, max_bytes):
        detail = f"data.object.status is not a text of 1 to {max_bytes} bytes without control characters"
        raise BadEnvelope("envelope_status", detail, fields)
    return version, fields.status


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_value = msgspec.json.Decoder().decode


def _fields(body: bytes) -> Fields:
    try:
        event = _decode_event(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _fields_slowly(body)
    entity = event.data.object
    try:
        return Fields(
            id=_value(event.id),
            type=_value(event.type),
            livemode=_value(event.livemode),
            merchant=_value(event.account.merchant_id),
            sequence=_value(event.sequence),
            created_at=_value(event.created_at),
            object_id=_value(entity.id),
            kind=_value(entity.object),
            version=_value(entity.version),
            status=_value(entity.status),
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _fields_slowly(body)


def _value(raw: msgspec.Raw) -> object:
    found: object = _decode_value(raw) if len(raw) else None
    return found


def _fields_slowly(body: bytes) -> Fields:
    try:
        # Bytes that are not UTF-8 become lone surrogates: a text that holds one is refused where it matters.
        event: object = json.loads(body.decode("utf-8", "surrogateescape"), parse_constant=_refuse_constant)
    except RecursionError:
        raise BadEnvelope("envelope_not_json", "the body is nested too deep to be read", Fields()) from None
    except ValueError:
        raise BadEnvelope("envelope_not_json", "the body is not JSON", Fields()) from None
    if not isinstance(event, dict):
        raise BadEnvelope("envelope_not_object", "the body is not a JSON object", Fields())
    account, entity = _mapping(event.get("account")), _mapping(_mapping(event.get("data")).get("object"))
    return Fields(
        id=event.get("id"),
        type=event.get("type"),
        livemode=event.get("livemode"),
        merchant=account.get("merchant_id"),
        sequence=event.get("sequence"),
        created_at=event.get("created_at"),
        object_id=entity.get("id"),
        kind=entity.get("object"),
        version=entity.get("version"),
        status=entity.get("status"),
    )


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
