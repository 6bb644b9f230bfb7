"""Events from files: one event, a JSON array of events, or one a line."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from tallyhook.errors import UsageError

MAX_FILE_BYTES = 268_435_456


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """One event to send.

    Args:
        body: the bytes that are signed and posted.
        id: its `id`, None where the bytes have none.
    """

    body: bytes
    id: str | None


def read_bytes(path: Path) -> bytes:
    """The file's bytes, or standard input's for `-`; raises UsageError."""
    try:
        if str(path) == "-":
            content = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with path.open("rb") as source:
                content = source.read(MAX_FILE_BYTES + 1)
    except OSError as failure:
        raise UsageError(f"{path} cannot be read: {failure.strerror}") from failure
    if len(content) > MAX_FILE_BYTES:
        raise UsageError(f"{path} is larger than {MAX_FILE_BYTES} bytes: split it")
    return content


def events(content: bytes) -> Iterator[SourceEvent]:
    """The events of a file, in order.

    A file that is one JSON document is sent byte by byte as it is; an array is sent element by element; several lines
    that are a JSON object each are sent line by line; bytes that are no JSON at all are sent as they are.

    Raises:
        UsageError: some lines are JSON objects and others are not; it names the first of these.
    """
    whole = _parsed(content)
    if isinstance(whole, list):
        for element in whole:
            # The standard library's writer: orjson refuses integers above 64 bits and lone surrogates.
            yield _event(json.dumps(element, ensure_ascii=True, separators=(",", ":")).encode(), element)
        return
    lines = list(_lines(content)) if whole is None else []
    if any(isinstance(found, dict) for _, _, found in lines):
        for number, line, found in lines:
            if not isinstance(found, dict):
                raise UsageError(f"line {number} is no JSON object, though others are: correct it or remove it")
            yield _event(line, found)
        return
    yield _event(content, whole)


def _lines(content: bytes) -> Iterator[tuple[int, bytes, object]]:
    """The lines that are not blank: number from 1, bytes, and what they are as JSON."""
    for number, line in enumerate(content.splitlines(), start=1):
        if line.strip():
            yield number, line, _parsed(line)


def _parsed(content: bytes) -> object:
    try:
        found: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            return None
    return found


def _event(body: bytes, value: object) -> SourceEvent:
    found = value.get("id") if isinstance(value, dict) else None
    return SourceEvent(body, found if isinstance(found, str) and found else None)
