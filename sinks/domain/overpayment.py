"""Overpayment flags: the customer paid more than was ordered, and a claim is open with the gateway's support.

A flag is a fact: it is kept from every event that carries it, late ones too, and its first observation stays.
"""

import json
from decimal import Decimal

import msgspec

from schemas.events import DepositEvent, Overpayment
from sinks.domain.decision import FlagDraft, Refusal
from sinks.domain.instants import instant
from sinks.domain.shape import shape_detail
from sinks.domain.shown import shown

PATH = "data.object.overpayment"
CAUSES = ("same_transfer_excess", "additional_transfer")
STATUS = "open"
ACTION_REQUIRED = "contact_support"
CLAIM_ID_BYTES_MAX = 512
"""Like every id; a key of many kilobytes would not fit into an index of PostgreSQL."""

_NULL = b"null"
_decode = msgspec.json.Decoder(Overpayment).decode


def read_flag(event: DepositEvent) -> FlagDraft | Refusal | None:
    """The flag that the event carries, checked; None when it carries none (absent or null)."""
    deposit = event.data.object
    raw = bytes(deposit.overpayment)
    if raw == _NULL:
        return None
    try:
        flag = _decode(raw)
    except msgspec.ValidationError as failure:
        return Refusal("overpayment_shape", shape_detail(failure, PATH))
    fault = _fault(flag)
    if fault is not None:
        return Refusal("overpayment_shape", f"{PATH}.{fault}")
    slip_received_at = instant(flag.slip_received_at)
    if slip_received_at is None:
        return Refusal("body_date", f"{PATH}.slip_received_at is {shown(flag.slip_received_at)}")
    expected_response_at = None
    if flag.expected_response_at is not None:
        expected_response_at = instant(flag.expected_response_at)
        if expected_response_at is None:
            return Refusal("body_date", f"{PATH}.expected_response_at is {shown(flag.expected_response_at)}")
    return FlagDraft(deposit.id, deposit.version, flag, slip_received_at, expected_response_at, raw)


def _fault(flag: Overpayment) -> str | None:
    """The field that breaks a rule of the flag table, with its value."""
    if not flag.claim_id:
        return "claim_id is empty"
    if len(flag.claim_id.encode()) > CLAIM_ID_BYTES_MAX:
        return f"claim_id is longer than {CLAIM_ID_BYTES_MAX} bytes"
    if flag.cause not in CAUSES:
        return f"cause is {shown(flag.cause)}"
    if flag.amount_minor <= 0:
        return f"amount_minor is {flag.amount_minor}"
    if flag.status != STATUS:
        return f"status is {shown(flag.status)}"
    if flag.action_required != ACTION_REQUIRED:
        return f"action_required is {shown(flag.action_required)}"
    return None


def same_flag(one: FlagDraft, other: FlagDraft) -> bool:
    """Whether two observations of one claim agree; if not, the later one is a collision.

    Times count as instants and the raw JSON as PostgreSQL's jsonb compares it. The observed version does not count.
    """
    return (
        one.flag.claim_id == other.flag.claim_id
        and one.pg_deposit_id == other.pg_deposit_id
        and one.flag.cause == other.flag.cause
        and one.flag.amount_minor == other.flag.amount_minor
        and one.slip_received_at == other.slip_received_at
        and one.flag.status == other.flag.status
        and one.flag.action_required == other.flag.action_required
        and one.expected_response_at == other.expected_response_at
        and same_json(one.raw, other.raw)
    )


def same_json(one: bytes, other: bytes) -> bool:
    """Whether two JSON texts are one jsonb value: numbers by value, members in any order, the last of a repeated key.

    Both have passed `read_text`, which bounds their nesting and their numbers.
    """
    return one == other or _same(_load(one), _load(other))


def _load(raw: bytes) -> object:
    value: object = json.loads(raw, parse_int=Decimal, parse_float=Decimal)
    return value


def _same(one: object, other: object) -> bool:
    # Types are compared first, because true equals 1 in Python.
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other
