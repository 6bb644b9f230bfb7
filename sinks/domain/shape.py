"""The typed event of a body, and what is said of a field of the wrong type, in our words."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from sinks.domain.decision import Refusal

Event = TypeVar("Event")

_ROOT = "$"
_AT = " - at `"


def shape_detail(failure: msgspec.ValidationError, root: str = "") -> str:
    """The path and the complaint, such as ``data.object.version: Expected `int`, got `str```.

    Args:
        failure: its text ends with msgspec's path where the field is not the value itself.
        root: the path of what was decoded; empty for the whole event.
    """
    complaint, _, at = str(failure).partition(_AT)
    path = (root + at.rstrip("`").removeprefix(_ROOT)).removeprefix(".")
    return f"{path or 'the event'}: {complaint}"


def parser(kind: type[Event]) -> Callable[[bytes], Event | Refusal]:
    """A function that makes the typed event of bytes that have passed `read_text`; its decoder is made once."""
    decode = msgspec.json.Decoder(kind).decode

    def parse(raw: bytes) -> Event | Refusal:
        try:
            return decode(raw)
        except msgspec.ValidationError as failure:
            return Refusal("body_shape", shape_detail(failure))
        except msgspec.DecodeError as failure:
            return Refusal("body_not_json", str(failure))

    return parse
