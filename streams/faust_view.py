"""What other threads may read of a running Faust app: what it owns, where it is, whether it is ready."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from faust.transport.drivers.aiokafka import TopicPartition

from streams.faust_repairs import coordination_ended


def told(failure: object) -> str:
    """What ended the app; where the broker refused for want of a right, also what to do."""
    lacking = "Authorization" in type(failure).__name__
    return repr(failure) + ("; `tallyhook topics acl` prints the rights that the stream needs" if lacking else "")


class FaustView:
    """A look at the app's inside that never fails: before the start there is nothing to see.

    Args:
        app: the Faust app.
        events: the topic that is read.
        batches: how many batches were finished.
    """

    def __init__(self, app: Any, events: str, batches: Callable[[], int]) -> None:
        self._app, self._events, self._batches = app, events, batches

    def crashed(self) -> str | None:
        """What ended the app's services, if something did."""
        reason = self._app.crash_reason
        return None if reason is None else told(reason)

    def coordination_ended(self) -> bool:
        """Whether the group coordination is over though the app is not stopping."""
        return coordination_ended(self._app)

    def owned(self) -> Collection[int]:
        """Partitions of `events` that the group gave to this worker."""
        try:
            return {tp.partition for tp in set(self._consumer().assignment()) if tp.topic == self._events}
        except (AttributeError, AssertionError, RuntimeError):  # not started, or a set that changed while it was copied
            return ()

    def fetched_to(self, partition: int) -> int | None:
        """The offset it fetches next, when everything before it was acked; else None."""
        try:
            subscription = self._consumer()._subscription.subscription
            position = subscription.assignment.state_value(TopicPartition(self._events, partition))._position
            waits = bool(self._app.consumer._unacked_messages)
        except (AttributeError, RuntimeError):
            return None
        return None if waits or position is None else int(position)

    def progress(self) -> int:
        """Grows with every batch and every changelog record that is replayed."""
        try:
            replayed = sum(offset or 0 for offset in dict(self._app.tables.recovery.active_offsets).values())
        except (AttributeError, RuntimeError):
            replayed = 0
        return self._batches() + replayed

    def not_ready(self) -> Sequence[str]:
        """Why the worker judges nothing now; empty when it works, or has joined the group with nothing to own."""
        app = self._app
        if not app.started or app.should_stop:
            return ("the worker is not running",)
        if app.rebalancing:
            return ("the group is rebalancing",)
        if not app.tables.actives_ready:
            return ("no partitions assigned, or their state is not recovered yet",)
        return ()

    def _consumer(self) -> Any:
        return self._app.consumer._thread._consumer
