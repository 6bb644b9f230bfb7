"""What the relay's threads tell each other."""

import pytest

from sinks.relay.status import Status, Stopping, patiently
from tallyhook import logs
from tallyhook.errors import KafkaUnavailable, LeaseLost, OutboxGap

LOG = logs.logger(__name__)


def test_patience_ends_with_success_and_tells_the_trouble_meanwhile() -> None:
    """A dependency that is away is asked again; /readyz shows why until it answers."""
    status = Status()
    seen: list[list[str]] = []

    def attempt() -> str:
        seen.append(list(status.not_ready()))
        if len(seen) < 3:
            raise KafkaUnavailable("no broker")
        return "there"

    assert patiently(status, LOG, attempt) == "there"
    assert seen == [[], ["no broker"], ["no broker"]]
    assert status.not_ready() == []


def test_patience_ends_when_the_process_must() -> None:
    """A stop and a failure of another thread are heeded before the next attempt."""
    stopped, failed = Status(), Status()
    stopped.stop()
    failed.fail(LeaseLost("another relay took over"))
    with pytest.raises(Stopping):
        patiently(stopped, LOG, lambda: pytest.fail("asked again"))
    with pytest.raises(LeaseLost):
        patiently(failed, LOG, lambda: pytest.fail("asked again"))


def test_other_failures_are_not_waited_out() -> None:
    """What a person must mend is raised at once."""

    def attempt() -> None:
        raise OutboxGap("row 7")

    with pytest.raises(OutboxGap):
        patiently(Status(), LOG, attempt)


def test_the_first_failure_is_told_and_a_halt_outlives_other_troubles() -> None:
    """Later consequences never hide the cause."""
    status = Status()
    status.fail(LeaseLost("the cause"))
    status.fail(LeaseLost("a consequence"))
    with pytest.raises(LeaseLost, match="the cause"):
        status.check()
    status.halt(OutboxGap("row 7"))
    status.trouble("no broker")
    assert status.not_ready() == ["row 7"]
    assert status.stopping
    assert status.stopping_seconds >= 0
