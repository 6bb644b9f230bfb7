"""Clocks: only a difference that cannot be the road's is told."""

from datetime import UTC, datetime, timedelta

import pytest

from tallyhook.operations.doctor import clocks
from tallyhook.operations.doctor.clocks import Reading

ASKED = datetime(2026, 6, 1, tzinfo=UTC)


def reading(there_seconds: float, answered_seconds: float = 0.2, resolution_seconds: float = 0.0) -> Reading:
    """Another clock's answer, in seconds after the question."""
    there, answered = (ASKED + timedelta(seconds=seconds) for seconds in (there_seconds, answered_seconds))
    return Reading("the other's", there, ASKED, answered, resolution_seconds)


@pytest.mark.parametrize(
    ("taken", "skew_seconds"),
    [
        (reading(0.1), 0),
        (reading(5.2), 5),
        (reading(-5), -5),
        (reading(9, answered_seconds=10), 0),
        (reading(-5, resolution_seconds=1), -4),
    ],
)
def test_the_least_difference_counts(taken: Reading, skew_seconds: float) -> None:
    """An answer from between question and answer may be right, however slow the road is."""
    assert taken.least_skew_seconds == pytest.approx(skew_seconds)


@pytest.mark.parametrize("sign", [1, -1])
def test_above_the_tolerance_every_webhook_is_refused(sign: int) -> None:
    """2 s are nothing, 3 s a warning, beyond the door's tolerance a broken promise."""

    def severities(skew_seconds: float) -> list[str]:
        found = clocks.examine(reading(sign * skew_seconds + (0.2 if sign > 0 else 0)), 300)
        return [finding.severity for finding in found]

    assert severities(2) == []
    assert severities(3) == ["warning"]
    assert severities(300) == ["warning"]
    assert severities(301) == ["breaks"]


def test_it_says_which_clock_is_behind() -> None:
    """Seen from this machine."""
    (behind,) = clocks.examine(reading(10.2), 300)
    (ahead,) = clocks.examine(reading(-10), 300)
    assert "10.0 s behind" in behind.found
    assert "10.0 s ahead of" in ahead.found
