"""What the agent does with a batch: judge, publish the outputs, publish the changelog, store, and only then ack."""

from collections.abc import Sequence
from typing import Any

from streams.plan import Plan, Planner, Record
from streams.publisher import Publisher
from streams.table import ObjectTable
from tallyhook.clock import Clock
from tallyhook.failpoints import reach
from tallyhook.metrics import Metrics

SECONDS_A_DAY = 86_400


class Guardian:
    """Handles batches, one at a time.

    A crash at any point only repeats: outputs stand before the state that follows from them, the ack comes last.

    Args:
        planner: judges.
        table: the states between batches.
        publisher: outputs and changelog go through it.
        clock: for the day an object was last touched.
        metrics: verdicts, dead letters and batch sizes are counted there.
    """

    def __init__(
        self, planner: Planner, table: ObjectTable, publisher: Publisher, clock: Clock, metrics: Metrics
    ) -> None:
        self._planner, self._table, self._publisher = planner, table, publisher
        self._clock, self._metrics = clock, metrics
        self.batches = 0

    async def handle(self, events: Sequence[Any]) -> None:
        """Returns when outputs and changelog are durable and the store has the new states: now the batch may be acked.

        Args:
            events: Faust's, those of one object in their partition's order.
        """
        began_at = self._clock.monotonic_seconds()
        by_key = {event.message.key: event for event in events}

        def recall(record: Record) -> Any:
            return self._table.recall(by_key[record.key])

        day = int(self._clock.now().timestamp()) // SECONDS_A_DAY
        plan = self._planner.plan([event.message for event in events], recall, day)
        reach("stream.judged")
        await self._publisher.publish(plan.outputs, sent="stream.outputs_sent")
        reach("stream.outputs_confirmed")
        changelog = self._table.changelog_records(plan.changes)
        offsets = await self._publisher.publish(changelog, sent="stream.changelog_sent")
        reach("stream.changelog_confirmed")
        self._table.store(changelog, by_key, offsets)
        reach("stream.table_written")
        self.batches += 1
        self._count(plan, len(events), self._clock.monotonic_seconds() - began_at)

    def _count(self, plan: Plan, events: int, seconds: float) -> None:
        for verdict, count in plan.verdicts.items():
            self._metrics.counter("tallyhook_stream_verdicts_total", verdict=verdict).inc(count)
        for reason, count in plan.dead.items():
            self._metrics.counter("tallyhook_stream_dead_lettered_total", reason=reason).inc(count)
        self._metrics.histogram("tallyhook_stream_batch_events").observe(events)
        self._metrics.histogram("tallyhook_stream_batch_seconds").observe(seconds)
