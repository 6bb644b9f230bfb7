"""What a handler makes of an event, and how it hands over an effect."""

from typing import Protocol

from tests.reference.reading import Json

Outcome = tuple[str, str | None]
"""Verdict, and the reason why the event has less effect than its status suggests."""


class Enqueue(Protocol):
    """`enqueueEffect`: one outbox row; the dedupe key is scope and name joined by a colon, unless given."""

    def __call__(self, topic: str, payload: Json, dedupe_key: str) -> None: ...
