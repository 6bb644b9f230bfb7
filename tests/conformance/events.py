"""One event of the gateway, as bytes and as what the door knows of it."""

from dataclasses import dataclass, field
from typing import Any

from tests.conformance.bodies import Fault, encode

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class Event:
    """One event as the gateway made it.

    Args:
        version: None for objects without versions.
        fault: what is wrong with it, for a person who reads the counterexample; None when nothing is.
    """

    event_id: str
    type: str
    object_id: str
    object_kind: str
    status: str
    version: int | None
    sequence: int
    livemode: bool
    partition: int
    body: bytes
    fault: str | None

    def __repr__(self) -> str:
        """Short: a counterexample tells the bodies once, batch by batch."""
        return f"<{self.event_id}: {self.type} {self.object_id[:8]} v{self.version} {self.status}>"


@dataclass(frozen=True, slots=True)
class Told:
    """What one event of an object tells, without the names of the object.

    Args:
        members: data.object without id, kind and version.
        type: the event's type; None is the one that follows from kind and status.
        beside: what stands next to data.object.
    """

    members: Json
    type: str | None = None
    beside: Json = field(default_factory=dict)
    created_at: str = "2026-03-01T03:33:15.123Z"


def make_event(
    o: Json,
    event_id: str,
    partition: int,
    sequence: int,
    fault: Fault | None,
    *,
    told: Told | None = None,
    escapes: bool = False,
) -> Event:
    """The event of a snapshot, as the gateway would make it, save for the fault.

    Args:
        told: where type and moment are taken from, and what stands beside the snapshot; its members are not.
    """
    told = told or Told({})
    event_type = told.type or f"{o['object'].removesuffix('_order')}.{o.get('status', 'posted')}"
    event = {
        "id": event_id,
        "object": "event",
        "type": event_type,
        "api_version": "2026-01-01",
        "livemode": True,
        "created_at": told.created_at,
        "sequence": sequence,
        "account": {"merchant_id": "mer_1", "white_label_id": None},
        # Faults change these in place, and a leg's fill is told by several events.
        "data": {"object": dict(o), **_copied(told.beside), "previous_attributes": {"status": "open"}},
    }
    body, livemode = encode(event, fault, escapes=escapes)
    return Event(
        event_id=event_id,
        type=event_type,
        object_id=o["id"],
        object_kind=o["object"],
        status=o.get("status", ""),
        version=o.get("version"),
        sequence=sequence,
        livemode=livemode,
        partition=partition,
        body=body,
        fault=None if fault is None else fault.name,
    )


def _copied(members: Json) -> Json:
    return {name: dict(value) if isinstance(value, dict) else value for name, value in members.items()}
