"""The version guard: what is new, late or seen before, judged by an object's versions alone.

Pure: state and delivery in, verdict and next state out. Nothing here decides about money; the sink judges again by its
own rows.
"""

from typing import NamedTuple

import msgspec

from schemas.verdicts import StreamVerdict

WINDOW_VERSIONS = 64
"""So many versions are remembered an object; one that fell out of the window counts as `late` when it comes again."""

STATUS_CHARACTERS = 256
"""A status is remembered up to here: the state of an object stays below two kilobytes whatever a sender writes."""


class Delivery(NamedTuple):
    """What the guard needs to know of one delivery.

    Args:
        version: data.object.version; None for objects without versions (balance transactions).
        status: data.object.status; empty where the object has none.
        day: when it is judged, in days since 1970-01-01 (UTC).
    """

    version: int | None
    status: str
    day: int


class Seen(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is remembered of one object. Members may only be added at the end: older records lack them.

    Args:
        version: the highest version seen; None before the first.
        status: the status that came with it (for objects without versions: with the first delivery).
        recent: the last 64 versions seen, in order of arrival.
        touched_day: the last day on which it was delivered, in days since 1970-01-01 (UTC).
        immutable: whether a delivery without a version was seen.
    """

    version: int | None = None
    status: str = ""
    recent: tuple[int, ...] = ()
    touched_day: int = 0
    immutable: bool = False


NOTHING = Seen()

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Seen)


def judge(seen: Seen | None, delivery: Delivery) -> tuple[StreamVerdict, Seen]:
    """The verdict on a delivery, and what is remembered after it.

    A state that is equal to the one before needs no record in the changelog.
    """
    before = NOTHING if seen is None else seen
    version, status, day = delivery
    if version is None:
        return _judge_immutable(before, status, day)
    if before.version is None or version > before.version:
        recent = (*before.recent, version)[-WINDOW_VERSIONS:]
        return "advanced", Seen(version, status[:STATUS_CHARACTERS], recent, day, before.immutable)
    if version == before.version or version in before.recent:
        return "redelivered", _touched(before, day)
    recent = (*before.recent, version)[-WINDOW_VERSIONS:]
    return "late", Seen(before.version, before.status, recent, max(day, before.touched_day), before.immutable)


def _judge_immutable(before: Seen, status: str, day: int) -> tuple[StreamVerdict, Seen]:
    if before.immutable:
        return "redelivered", _touched(before, day)
    kept = status[:STATUS_CHARACTERS] if before.version is None else before.status
    return "immutable", Seen(before.version, kept, before.recent, max(day, before.touched_day), True)


def _touched(before: Seen, day: int) -> Seen:
    """The same state; another object only once a day, so that redeliveries do not fill the changelog."""
    if day <= before.touched_day:
        return before
    return msgspec.structs.replace(before, touched_day=day)


def encode(seen: Seen) -> bytes:
    """As the table and its changelog hold it (MessagePack, an array)."""
    return _encoder.encode(seen)


def decode(raw: bytes) -> Seen:
    """The state of one object; raises msgspec.DecodeError for bytes that `encode` did not write."""
    return _decoder.decode(raw)
