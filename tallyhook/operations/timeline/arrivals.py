"""The events of one object in order of arrival, each with all of its deliveries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tallyhook.operations.explain import Delivery, first_delivery, later_delivery, set_aside_delivery
from tallyhook.operations.timeline.catalogue import Language

StoredRow = Mapping[str, Any]
"""A row as the named statement gives it."""


@dataclass(frozen=True, slots=True)
class ArrivedEvent:
    """One event of the object.

    Args:
        arrival: its place in the order of arrival, from 1; an event that was only ever set aside stands where it was
            read.
        event_id: None where the door could not read it.
        deliveries: each of them with place, verdict and reason.
    """

    arrival: int
    event_id: str | None
    event_type: str | None
    version: int | None
    sequence: int | None
    origin: str | None
    key_id: str | None
    deliveries: tuple[Delivery, ...]


def in_order_of_arrival(
    inbox: Sequence[StoredRow],
    later: Sequence[StoredRow],
    set_aside: Sequence[StoredRow],
    events_topic: str,
    language: Language,
) -> tuple[ArrivedEvent, ...]:
    """The events of the three statements of `support.sql`; reasons as sentences of the language.

    Args:
        events_topic: the full name of the topic that inbox and redeliveries count their places in.
    """
    deliveries: dict[object, list[Delivery]] = {}
    for row in set_aside:
        deliveries.setdefault(_name(row), []).append(set_aside_delivery(row, language))
    for row in inbox:
        deliveries.setdefault(_name(row), []).append(first_delivery(row, events_topic, language))
    for row in later:
        deliveries.setdefault(_name(row), []).append(later_delivery(row, events_topic, language))
    ordered, named = list(inbox), {_name(row) for row in inbox}
    for row in set_aside:
        if _name(row) not in named:
            named.add(_name(row))
            place = next((n for n, other in enumerate(ordered) if _came_before(row, other, events_topic)), len(ordered))
            ordered.insert(place, row)
    return tuple(_event(number, row, deliveries[_name(row)]) for number, row in enumerate(ordered, start=1))


def _name(row: StoredRow) -> object:
    """The event's id; an event whose id could not be read is named by its place."""
    return row["event_id"] or (row["source_topic"], row["source_partition"], row["source_offset"])


def _came_before(row: StoredRow, other: StoredRow, events_topic: str) -> bool:
    """Whether a row that was set aside came before another; by time where they do not lie in the same partition."""
    place = row["source_topic"], row["source_partition"]
    if place == (other.get("source_topic", events_topic), other["source_partition"]):
        return bool(row["source_offset"] < other["source_offset"])
    moment = other["at"] if "source_topic" in other else other["received_at"]
    return bool(row["at"] < moment)


def _event(number: int, row: StoredRow, deliveries: Sequence[Delivery]) -> ArrivedEvent:
    return ArrivedEvent(
        number,
        row["event_id"],
        row["event_type"],
        _number(row["version"]),
        _number(row["sequence"]),
        row["origin"],
        row["key_id"],
        tuple(deliveries),
    )


def _number(value: int | str | None) -> int | None:
    """A column's number, or a header's text; None for a text that is none."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 20 else None
    return value
