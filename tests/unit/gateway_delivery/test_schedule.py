"""The retry schedule: what the gateway states, and what is refused."""

from datetime import timedelta

import pytest

from tallyhook.errors import UsageError
from tallyhook.gateway.schedule import STATED_SECONDS, RetrySchedule
from tallyhook.settings.gateway_sim import DEFAULT_RETRY_SECONDS, GatewaySimSettings


def test_the_default_keeps_what_the_gateway_states() -> None:
    """Twelve attempts over 92 hours; the third after 1 min 10 s, the fourth after 6 min 10 s."""
    schedule = RetrySchedule.from_text(DEFAULT_RETRY_SECONDS)
    assert schedule.attempts == 12
    stated = {attempt: schedule.offset(attempt - 1) for attempt in STATED_SECONDS}
    assert stated == {3: timedelta(minutes=1, seconds=10), 4: timedelta(minutes=6, seconds=10)}
    assert schedule.offset(1) == timedelta(seconds=10)
    assert schedule.offset(11) == timedelta(hours=92)
    assert schedule.offset(12) is None


def test_the_setting_has_the_same_default() -> None:
    """One text stands for both."""
    assert GatewaySimSettings.model_fields["retry_seconds"].default == DEFAULT_RETRY_SECONDS


@pytest.mark.parametrize(
    "text", ["", "10", "0,0", "0,10,5", "0,-1", "0,1.5", "0,x", "0,", "0,9999999", ",".join(map(str, range(101)))]
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    """Not rising from zero, not whole seconds, too long or too many."""
    with pytest.raises(UsageError, match="retry schedule"):
        RetrySchedule.from_text(text)


def test_a_single_attempt_is_a_schedule() -> None:
    """A gateway that never tries again."""
    assert RetrySchedule.from_text("0").offset(1) is None
