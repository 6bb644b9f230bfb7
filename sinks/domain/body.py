"""The check of an event's bytes: what PostgreSQL keeps as text and reads as jsonb later, when somebody looks.

The inbox stores the signed bytes as text and derives the jsonb column from them without parsing at insert,
so whatever jsonb would refuse must be found here.
"""

import re

import msgspec

from sinks.domain.body_faults import DIGITS_MAX, find_fault
from sinks.domain.decision import Refusal

NESTING_MAX = 200
"""Levels of arrays and objects; the gateway's own events have about six."""


class _AnyObject(msgspec.Struct):
    """Takes every JSON object and keeps nothing of it: what is left is a strict check of the syntax."""


_check_syntax = msgspec.json.Decoder(_AnyObject).decode

# A number with an exponent is the only value that starts with an `e` once digits, signs, points and white space are
# gone: it then follows a colon, a comma or an opening bracket, which are made one and the same here.
_TO_EXPONENTS = bytes.maketrans(b"E,[", b"e::")
_NUMERIC = b"0123456789.-+ \t\r\n"
_EXPONENT = b":e"

_TO_MANTISSAS = bytes.maketrans(b"123456789.", b"0000000000")
_LONG_MANTISSA = b"0" * (DIGITS_MAX + 1)

# The closing quote is optional, so that an unterminated string is passed in one step and the scan stays linear.
_STRING_OR_BRACKET = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)


def read_text(raw: bytes) -> str | Refusal:
    """The text of an event's bytes, or why PostgreSQL could not keep it.

    The text is one JSON object in UTF-8 (RFC 8259, no byte order mark), without NUL and lone surrogates, nested at most
    `NESTING_MAX` levels, with numbers within the bounds of `sinks.domain.body_faults`. Linear in the length of `raw`.
    """
    if b"\0" in raw:
        return Refusal("body_text", f"byte {raw.index(0)} is a NUL")
    try:
        text = raw.decode()
    except UnicodeDecodeError as failure:
        return Refusal("body_not_json", f"byte {failure.start} is not UTF-8")
    if raw.count(b"[") + raw.count(b"{") > NESTING_MAX and _nested_too_deep(raw):
        return Refusal("body_shape", f"nested more than {NESTING_MAX} levels")
    try:
        _check_syntax(raw)
    except msgspec.ValidationError:
        # The decoder stops at the first byte of another type; the rest may be no JSON.
        return find_fault(text) or Refusal("body_shape", "the event is not an object")
    except msgspec.DecodeError as failure:
        # A lone surrogate is broken syntax to the decoder, but has a reason of its own.
        return find_fault(text) or Refusal("body_not_json", str(failure))
    if b"\\u0000" in raw or _numbers_are_suspicious(raw):
        return find_fault(text) or text
    return text


def _numbers_are_suspicious(raw: bytes) -> bool:
    """Whether a number may have an exponent or very many digits; false alarms are possible, misses are not."""
    rest = raw.translate(_TO_EXPONENTS, _NUMERIC)
    if _EXPONENT in rest:
        return True
    return len(raw) - len(rest) > DIGITS_MAX and _LONG_MANTISSA in raw.translate(_TO_MANTISSAS)


def _nested_too_deep(raw: bytes) -> bool:
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(raw):
        token = found[0]
        if token in (b"[", b"{"):
            depth += 1
            if depth > NESTING_MAX:
                return True
        elif token in (b"]", b"}"):
            depth -= 1
    return False
