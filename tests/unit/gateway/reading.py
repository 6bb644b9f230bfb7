"""What tests read of a world's events."""

import json
from typing import Any

from tallyhook.gateway.world.model import SimEvent, SimObject, World


def body_of(event: SimEvent) -> dict[str, Any]:
    """The event as JSON."""
    decoded: dict[str, Any] = json.loads(event.body)
    return decoded


def events_of(world: World, object_id: str) -> list[SimEvent]:
    """An object's events in order of creation."""
    return [event for event in world.events if event.object_id == object_id]


def orders_of(world: World, scenario: str) -> list[SimObject]:
    """The orders that live that life, in order of creation."""
    return [found for found in world.objects.values() if found.scenario == scenario]


def snapshots_of(world: World, object_id: str) -> list[dict[str, Any]]:
    """`data.object` of an object's events, in order of creation."""
    return [body_of(event)["data"]["object"] for event in events_of(world, object_id)]
