"""Events that were never sent before: a known event with ids and a moment of its own."""

import json
import secrets
from collections.abc import Iterable, Iterator
from datetime import datetime

from tallyhook.errors import UsageError
from tallyhook.gateway.sources import SourceEvent


def freshened(events: Iterable[SourceEvent], moment: datetime) -> Iterator[SourceEvent]:
    """The same events, each with a new `id` and `created_at`; events of one object stay events of one new object.

    Ids inside of a fill, a reversal or a balance transaction stay: these are facts of their own.

    Args:
        moment: aware; becomes `created_at`.

    Raises:
        UsageError: an event is no JSON object with `id` and `data.object.id`.
    """
    suffix = secrets.token_hex(6)
    for number, event in enumerate(events, start=1):
        yield _fresh(number, event, suffix, f"{moment:%Y-%m-%dT%H:%M:%SZ}")


def _fresh(number: int, event: SourceEvent, suffix: str, created_at: str) -> SourceEvent:
    try:
        found = json.loads(event.body)
        entity = found["data"]["object"]
        fresh_id, entity["id"] = f"{_text(found['id'])}_{suffix}", f"{_text(entity['id'])}_{suffix}"
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"event {number} has no id or no data.object.id: --fresh has nothing to make anew") from None
    found["id"], found["created_at"] = fresh_id, created_at
    return SourceEvent(json.dumps(found, separators=(",", ":")).encode(), fresh_id)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value
