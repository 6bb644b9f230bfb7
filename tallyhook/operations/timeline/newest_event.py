"""What the newest event alone tells: who is transferring just now, and the gateway's own words for the end user."""

import msgspec

from tallyhook.operations.timeline.catalogue import Language
from tallyhook.operations.timeline.records import Newest

MESSAGES_MAX = 10
_NULL = msgspec.Raw(b"null")


class _Object(msgspec.Struct, gc=False):
    reserved_minor: msgspec.Raw = _NULL
    review: msgspec.Raw = _NULL
    rejection: msgspec.Raw = _NULL


class _Data(msgspec.Struct, gc=False):
    object: _Object


class _Event(msgspec.Struct, gc=False):
    data: _Data


_read = msgspec.json.Decoder(_Event).decode


def reserved_minor(newest: Newest | None) -> int | None:
    """What a payer has promised and not yet transferred (satang); None unless the newest event is a match.

    An older match may have lapsed silently, so only the newest event counts, and nothing is ever added up.
    """
    if newest is None or newest.event_type != "withdrawal.matched":
        return None
    amount = _value(newest, "reserved_minor")
    return amount if type(amount) is int and amount > 0 else None


def review_messages(newest: Newest | None, language: Language) -> tuple[str, ...]:
    """The gateway's reasons for a review, as end users may read them; empty where it sent none."""
    review = _value(newest, "review")
    reasons = review.get("reasons") if isinstance(review, dict) else None
    if not isinstance(reasons, list):
        return ()
    told = (_display(reason, language) for reason in reasons[:MESSAGES_MAX])
    return tuple(text for text in told if text)


def rejection_message(newest: Newest | None, language: Language) -> str | None:
    """The gateway's text for a rejection; None where it sent none."""
    return _display(_value(newest, "rejection"), language)


def _display(value: object, language: Language) -> str | None:
    """`display_th` or `display_en`; the other one where only that was sent."""
    if not isinstance(value, dict):
        return None
    told = (value.get(f"display_{language}"), value.get("display_th"), value.get("display_en"))
    return next((text for text in told if isinstance(text, str) and text), None)


def _value(newest: Newest | None, member: str) -> object:
    """One member of data.object, decoded; None for anything that cannot be read: the page goes without it."""
    if newest is None:
        return None
    try:
        value: object = msgspec.json.decode(getattr(_read(newest.event_raw).data.object, member))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return value
