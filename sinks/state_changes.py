"""The work on `state-changes`: batches, parked events, and what is measured of them."""

from collections.abc import Sequence

from confluent_kafka import Message

from sinks.batch import Applier
from sinks.fence import Fence, TopicRange
from sinks.measures import Measures
from sinks.plan import BatchResult
from sinks.quarantine import QuarantineWindow
from sinks.records import SinkRecord, headers_of
from tallyhook.clock import Clock
from tallyhook.failpoints import reach
from tallyhook.postgres import Connection
from tallyhook.settings import Settings

COUNT_SECONDS = 5.0


class StateChanges:
    """Applies state changes through one connection; made anew with each connection.

    Args:
        topic_id: the broker's id of `state-changes`.
        window: outlives the connection, so that a reconnect does not forget what was quarantined.
    """

    def __init__(
        self,
        connection: Connection,
        topic_id: str,
        settings: Settings,
        window: QuarantineWindow,
        measures: Measures,
        clock: Clock,
    ) -> None:
        installation = settings.installation
        self._applier = Applier(connection, installation, settings.sink, topic_id=topic_id, window=window, clock=clock)
        self._measures, self._clock = measures, clock
        self._parked_check_seconds = settings.sink.parked_check_seconds
        self._looked_at = self._counted_at = float("-inf")

    @property
    def fence(self) -> Fence:
        """The positions that are owned."""
        return self._applier.fence

    def claim(self, partitions: Sequence[int], held: dict[int, TopicRange]) -> None:
        """Makes this process the owner of the partitions; their parked events are looked for at once."""
        self._applier.claim(partitions, held)
        reach("sink.claimed")
        self._looked_at = float("-inf")

    def apply(self, messages: Sequence[Message]) -> None:
        """Applies the records in order."""
        records = []
        for message in messages:
            partition, offset = message.partition() or 0, message.offset() or 0
            position = self.fence.positions.get(partition)
            if position is not None:
                headers = headers_of(message)
                records.append(SinkRecord(partition, offset, position.epoch, message.value() or b"", headers))
        began = self._clock.monotonic_seconds()
        self._measures.taken(messages)
        result = self._applier.apply(records)
        self._note(result, len(records), began)

    def between(self) -> None:
        """Looks for parked events that can go on, and counts what waits, each in its own interval."""
        now = self._clock.monotonic_seconds()
        if now - self._looked_at >= self._parked_check_seconds:
            self._looked_at = now
            result = self._applier.apply_ready()
            if result.finished:
                self._note(result, result.finished, now)
                # There may be more than one look takes.
                self._looked_at = float("-inf")
        if now - self._counted_at >= COUNT_SECONDS:
            self._counted_at = now
            self._measures.waiting(self._applier.parking.count(sorted(self.fence.positions)))

    def _note(self, result: BatchResult, events: int, began: float) -> None:
        self._measures.batch(result, events, self._clock.monotonic_seconds() - began)
