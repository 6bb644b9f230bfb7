"""The lag as it is shown: it grows with time, also while nobody can measure it."""

from datetime import UTC, datetime, timedelta

from tallyhook.lag import Shown, readings
from tallyhook.lag_reader import Waiting
from tallyhook.metrics import Metrics
from tallyhook.settings import Installation

START = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


class SteppedClock:
    """Time that moves when the test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        """Wall time."""
        return START + timedelta(seconds=self.seconds)

    def monotonic_seconds(self) -> float:
        """Seconds since the start."""
        return self.seconds


def shown() -> tuple[Shown, Metrics, SteppedClock]:
    """A display with its metrics and its clock."""
    metrics, clock = Metrics(), SteppedClock()
    return Shown("events", metrics, clock), metrics, clock


def value(metrics: Metrics, name: str, **labels: str) -> float:
    """One sample."""
    found = metrics.registry.get_sample_value(name, {"topic": "events", **labels})
    assert found is not None
    return found


def test_the_oldest_of_all_partitions_counts() -> None:
    """Seconds since its record came, and that as a share of the retention."""
    display, metrics, _ = shown()
    now = START.timestamp()
    display.measured({0: Waiting(3, now - 60), 1: Waiting(500, now - 90), 2: Waiting(0, None)}, 900.0)
    display.show_ages()
    assert value(metrics, "tallyhook_lag_seconds") == 90
    assert value(metrics, "tallyhook_lag_retention_ratio") == 0.1
    assert [value(metrics, "tallyhook_lag_events", partition=str(number)) for number in range(3)] == [3, 500, 0]
    assert value(metrics, "tallyhook_lag_unknown_seconds") == 0


def test_it_grows_while_nothing_can_be_measured() -> None:
    """The age goes on from what was known, and it is said for how long nothing is."""
    display, metrics, clock = shown()
    display.measured({0: Waiting(1, START.timestamp() - 10)}, None)
    clock.seconds = 100
    display.show_ages()
    assert value(metrics, "tallyhook_lag_seconds") == 110
    assert value(metrics, "tallyhook_lag_unknown_seconds") == 100
    assert value(metrics, "tallyhook_lag_retention_ratio") == 0


def test_what_was_processed_is_no_longer_late() -> None:
    """A measurement that finds nothing waiting ends it."""
    display, metrics, clock = shown()
    display.measured({0: Waiting(1, START.timestamp() - 10)}, 60.0)
    clock.seconds = 5
    display.measured({0: Waiting(0, None)}, 60.0)
    display.show_ages()
    assert value(metrics, "tallyhook_lag_seconds") == 0
    assert value(metrics, "tallyhook_lag_retention_ratio") == 0
    assert value(metrics, "tallyhook_lag_unknown_seconds") == 0


def test_the_groups_are_those_of_the_stages() -> None:
    """The names with which stream and sink join."""
    own = Installation(topic_prefix="shop", schema_="pay")
    assert {label: (reading.topic, reading.group) for label, reading in readings(own).items()} == {
        "events": ("shop.events", own.group_id("streams")),
        "state-changes": ("shop.state-changes", own.group_id("sink")),
        "dead-letters": ("shop.dead-letters", own.group_id("sink-dead-letters")),
    }
