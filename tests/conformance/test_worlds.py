"""A generator that misses a corner proves nothing about it: the random worlds are held to what they must contain."""

from collections import Counter

from hypothesis import HealthCheck, Phase, given, settings

from tests.conformance.conftest import Twins
from tests.conformance.deposit_lives import STATUSES
from tests.conformance.histories import OTHER_KINDS
from tests.conformance.withdrawal_lives import STATUSES as STATUSES_OF_WITHDRAWALS
from tests.conformance.worlds import PARTITIONS, World, worlds


def _features(world: World) -> set[str]:
    """What happens in a world, as words."""
    found: set[str] = set()
    highest: dict[str, int] = {}
    first: dict[str, int] = {}
    versions: dict[tuple[str, int], str] = {}
    kinds: dict[str, str] = {}
    known: set[str] = set()
    for place, batch in enumerate(world):
        known |= {correlation.pg_deposit_id for correlation in batch.correlations}
        found |= {f"correlated before batch {min(place, 1)}" for _ in batch.correlations}
        for arrival in batch.arrivals:
            event = arrival.event
            found |= {f"status {event.status}", f"kind {event.object_kind}", f"fault {event.fault}"}
            found.add(f"type {event.type}")
            if kinds.setdefault(event.object_id, event.object_kind) != event.object_kind:
                found.add("a namesake of another kind")
            if event.type.partition(".")[0] not in event.object_kind and event.object_kind != "balance_transaction":
                found.add("a type of another kind")
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
    """Every status, kind and way of arriving occurs within 300 worlds, and many a fault."""
    seen: Counter[str] = Counter()

    @settings(max_examples=300, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(worlds())
    def collect(world: World) -> None:
        seen.update(_features(world))

    collect()
    required = {
        *(f"status {status}" for status in STATUSES),
        *(f"status {status}" for status in STATUSES_OF_WITHDRAWALS),
        *(f"type withdrawal.{kind}" for kind in ("created", "matched", "filled", "fill_reversed", "held_by_bank")),
        *(f"kind {kind}" for kind in ("deposit_order", "withdrawal_order", "balance_transaction", *OTHER_KINDS)),
        *(f"partition {partition}" for partition in range(PARTITIONS)),
        *("correlated before batch 0", "correlated before batch 1", "known", "outran its correlation", "flag"),
        *("late", "in order", "repeated", "replayed", "two events of one version"),
        *("a namesake of another kind", "a type of another kind"),
    }
    assert required - set(seen) == set()
    assert len([feature for feature in seen if feature.startswith("fault ")]) > 8
    assert min(seen[ordinary] for ordinary in ("late", "repeated", "outran its correlation", "flag")) > 20


OUTCOMES_OF_WITHDRAWALS = {
    *("fill_shape", "fill_collision", "reversal_shape", "reversal_collision", "transaction_collision", "body_shape"),
    *("late_fact", "older_version", "already_recorded", "not_all_filled", "already_closed"),
    *("reversed_after_settlement", "already_refunded", "already_released", "already_compensated"),
    *("show_progress", "close_withdrawal", "refund_unfilled", "release_user_lock", "update_local_status"),
    *("compensate_reversed_fill", "snapshot"),
}


def test_worlds_come_to_every_outcome(twins: Twins) -> None:
    """Every reason, effect and cause of waiting of withdrawals and balance transactions occurs within 400 worlds."""
    seen: set[str] = set()

    @settings(
        max_examples=400,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(worlds(nouns=("withdrawal", "withdrawal", "withdrawal", "transaction")))
    def collect(world: World) -> None:
        if seen >= OUTCOMES_OF_WITHDRAWALS:
            return
        left = twins.handler.live(world)
        seen.update(row["reason"] for row in (*left["inbox"], *left["quarantined"]))
        seen.update(row["topic"] for row in left["effects in order, by object"])
        seen.update(row["parked_reason"] for row in left["inbox"])

    collect()
    assert OUTCOMES_OF_WITHDRAWALS - seen == set(), "add worlds, or make what is missing less rare"
