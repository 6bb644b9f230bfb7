"""A generator that misses a corner proves nothing about it: the random worlds are held to what they must contain."""

from collections import Counter

from hypothesis import HealthCheck, given, settings

from tests.conformance.lives import STATUSES
from tests.conformance.worlds import OTHER_KINDS, PARTITIONS, World, worlds


def _features(world: World) -> set[str]:
    """What happens in a world, as words."""
    found: set[str] = set()
    highest: dict[str, int] = {}
    first: dict[str, int] = {}
    versions: dict[tuple[str, int], str] = {}
    known: set[str] = set()
    for place, batch in enumerate(world):
        known |= {correlation.pg_deposit_id for correlation in batch.correlations}
        found |= {f"correlated before batch {min(place, 1)}" for _ in batch.correlations}
        for arrival in batch.arrivals:
            event = arrival.event
            found |= {f"status {event.status}", f"kind {event.object_kind}", f"fault {event.fault}"}
            found.add(f"partition {event.partition}")
            found.add("known" if event.object_id in known else "outran its correlation")
            if b'"claim_id"' in event.body:
                found.add("flag")
            if event.event_id in first:
                found.add("replayed" if first[event.event_id] == arrival.source_offset else "repeated")
            elif event.version is not None:
                found.add("late" if event.version < highest.get(event.object_id, -1) else "in order")
                if versions.setdefault((event.object_id, event.version), event.event_id) != event.event_id:
                    found.add("two events of one version")
                highest[event.object_id] = max(event.version, highest.get(event.object_id, -1))
            first.setdefault(event.event_id, arrival.source_offset)
    return found


def test_worlds_hold_every_kind_of_trouble() -> None:
    """Every status, kind and way of arriving occurs within 200 worlds, and many a fault."""
    seen: Counter[str] = Counter()

    @settings(max_examples=200, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(worlds())
    def collect(world: World) -> None:
        seen.update(_features(world))

    collect()
    required = {
        *(f"status {status}" for status in STATUSES),
        *(f"kind {kind}" for kind in ("deposit_order", *OTHER_KINDS)),
        *(f"partition {partition}" for partition in range(PARTITIONS)),
        *("correlated before batch 0", "correlated before batch 1", "known", "outran its correlation", "flag"),
        *("late", "in order", "repeated", "replayed", "two events of one version"),
    }
    assert required - set(seen) == set()
    assert len([feature for feature in seen if feature.startswith("fault ")]) > 8
    assert min(seen[ordinary] for ordinary in ("late", "repeated", "outran its correlation", "flag")) > 20
