"""What is measured of the sink: every number of it goes through here."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from schemas.verdicts import ParkedReason
from sinks.parking import Waiting
from sinks.plan import BatchResult
from tallyhook.clock import Clock
from tallyhook.metrics import Metrics

PARKED_REASONS: tuple[ParkedReason, ...] = ("correlation", "snapshot")


class Measures:
    """Fills the sink's metrics."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics, self._clock = metrics, clock
        self._taken_seconds = self._done_seconds = clock.now().timestamp()
        self._shown: set[int] = set()
        self._behind = False

    def taken(self, messages: Sequence[Message]) -> None:
        """Notes how old the records are that are being worked on: what waits behind them is not older."""
        stamps = [stamp / 1000 for kind, stamp in (m.timestamp() for m in messages) if kind != TIMESTAMP_NOT_AVAILABLE]
        if stamps:
            self._taken_seconds = min(stamps)
            self._behind = True

    def batch(self, result: BatchResult, events: int, seconds: float) -> None:
        """Counts what one batch did."""
        metrics = self._metrics
        metrics.histogram("tallyhook_sink_batch_events").observe(events)
        metrics.histogram("tallyhook_sink_batch_seconds").observe(seconds)
        for verdict, number in result.verdicts.items():
            if number:
                metrics.counter("tallyhook_sink_verdicts_total", verdict=verdict).inc(number)
        for reason, number in result.quarantined.items():
            metrics.counter("tallyhook_sink_quarantined_total", reason=reason).inc(number)
        for cause, number in result.repeated.items():
            metrics.counter("tallyhook_sink_batches_repeated_total", cause=cause).inc(number)
        for effect, number in result.effects.items():
            metrics.counter("tallyhook_sink_effects_total", effect=effect).inc(number)
        metrics.counter("tallyhook_sink_rows_advanced_total").inc(result.advanced)
        metrics.counter("tallyhook_sink_reversal_differs_total").inc(result.reversal_differs)
        metrics.counter("tallyhook_sink_fee_differs_total").inc(result.fee_differs)

    def dead_letters(self, reasons: Iterable[str]) -> None:
        """Counts dead letters that were copied, by reason."""
        for reason, number in Counter(reasons).items():
            self._metrics.counter("tallyhook_sink_quarantined_total", reason=reason).inc(number)

    def fence_lost(self) -> None:
        """Another worker owned a partition."""
        self._metrics.counter("tallyhook_sink_fence_lost_total").inc()

    def lag(self, lags: dict[int, int]) -> None:
        """Shows what waits in the partitions that are owned; those that went to others show 0 here."""
        for number in self._shown - lags.keys():
            self._metrics.gauge("tallyhook_sink_lag_events", partition=str(number)).set(0)
        for number, events in lags.items():
            self._metrics.gauge("tallyhook_sink_lag_events", partition=str(number)).set(events)
        self._shown = set(lags)
        self._behind = any(lags.values())
        if not self._behind:
            self._done_seconds = self._clock.now().timestamp()

    def show_age(self) -> None:
        """Shows the age of the oldest record that waits.

        It is not older than the ones that were taken last, and came after the moment when nothing waited.
        """
        age = 0.0
        if self._behind:
            age = self._clock.now().timestamp() - max(self._taken_seconds, self._done_seconds)
        self._metrics.gauge("tallyhook_sink_lag_seconds").set(max(0.0, age))

    def stopped(self, loops: Iterable[str], stopped: Collection[str]) -> None:
        """Shows which loops wait for a person."""
        for loop in loops:
            self._metrics.gauge("tallyhook_sink_stopped", loop=loop).set(loop in stopped)

    def gaps(self, missing: float, oldest_seconds: float) -> None:
        """Shows how many numbers of the gateway's sequence are missing, over all merchants, and since when."""
        self._metrics.gauge("tallyhook_gaps_open").set(missing)
        self._metrics.gauge("tallyhook_gaps_oldest_seconds").set(max(0.0, oldest_seconds))

    def waiting(self, parked: Sequence[Waiting]) -> None:
        """Shows what waits for a correlation or a snapshot."""
        found = {row.reason: row.events for row in parked}
        for reason in PARKED_REASONS:
            self._metrics.gauge("tallyhook_sink_parked", reason=reason).set(found.get(reason, 0))
        now = self._clock.now()
        oldest = max(((now - row.oldest).total_seconds() for row in parked), default=0.0)
        self._metrics.gauge("tallyhook_sink_parked_oldest_seconds").set(max(0.0, oldest))

    def quarantined_open(self, events: int) -> None:
        """Shows how many quarantined events wait for a person."""
        self._metrics.gauge("tallyhook_sink_quarantined_open").set(events)

    def outbox(self, *, unsent_rows: float, oldest_seconds: float) -> None:
        """Shows what no relay has sent yet."""
        self._metrics.gauge("tallyhook_outbox_unsent_rows").set(unsent_rows)
        self._metrics.gauge("tallyhook_outbox_oldest_seconds").set(max(0.0, oldest_seconds))

    def negative_balances(self, users: int) -> None:
        """Shows how many users owe."""
        self._metrics.gauge("tallyhook_sink_negative_balances").set(users)
