"""Where in a suspicious body the fault lies: the slow look, which names the field."""

import json

from sinks.domain.decision import Refusal
from sinks.domain.shown import PATH_CHARS_MAX

DIGITS_MAX = 1_000
"""Digits of a number. PostgreSQL's numeric takes 131,072 before the point and 16,383 after it; the exact decimal
expansion of a double has 767 significant ones."""

EXPONENT_MAX = 400
"""Greatest exponent of a number, up or down; a double's lie between -324 and 308. A number of a few bytes with a great
exponent becomes a hundred thousand digits wherever its jsonb is shown."""


class _Number(str):
    """A number as written."""

    __slots__ = ()


class _Members(list[tuple[str, object]]):
    """The members of an object, repeated keys too: PostgreSQL reads the overwritten ones as well."""

    __slots__ = ()


def find_fault(text: str) -> Refusal | None:
    """The first text or number that jsonb does not take, with its path; None when there is none.

    Args:
        text: nested only so deep that recursion is safe; may be no JSON at all.
    """
    try:
        body: object = json.loads(text, object_pairs_hook=_Members, parse_int=_Number, parse_float=_Number)
    except ValueError as failure:
        return Refusal("body_not_json", str(failure))
    found = _look(body)
    if found is None:
        return None
    path, refusal = found
    named = ".".join(reversed(path))[:PATH_CHARS_MAX] or "the event"
    return Refusal(refusal.reason, f"{named} {refusal.detail}")


def _look(value: object) -> tuple[list[str], Refusal] | None:
    """The first fault below a value: the path to it, innermost first, and what is said of it."""
    if isinstance(value, _Number):
        return _with_path(_number_fault(value))
    if isinstance(value, str):
        return _with_path(_text_fault(value))
    if isinstance(value, _Members):
        for key, member in value:
            refusal = _text_fault(key)
            if refusal is not None:
                return [], Refusal(refusal.reason, f"has a key that {refusal.detail}")
            found = _look(member)
            if found is not None:
                found[0].append(key)
                return found
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found = _look(item)
            if found is not None:
                found[0].append(str(index))
                return found
    return None


def _with_path(refusal: Refusal | None) -> tuple[list[str], Refusal] | None:
    return None if refusal is None else ([], refusal)


def _text_fault(text: str) -> Refusal | None:
    if "\0" in text:
        return Refusal("body_text", "has a NUL")
    try:
        text.encode()
    except UnicodeEncodeError:
        return Refusal("body_text", "has a lone surrogate")
    return None


def _number_fault(number: _Number) -> Refusal | None:
    mantissa, _, exponent = number.lower().partition("e")
    if len(mantissa) > DIGITS_MAX:
        return Refusal("body_shape", f"has more than {DIGITS_MAX} digits")
    magnitude = exponent.lstrip("+-0")
    if len(magnitude) > len(str(EXPONENT_MAX)) or int(magnitude or "0") > EXPONENT_MAX:
        return Refusal("body_shape", f"has an exponent beyond {EXPONENT_MAX}")
    return None
