"""Every metric's name stands in one Literal; labels are bounded, so that no sender can make series grow."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Literal, TypeVar, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.openmetrics import exposition as openmetrics

from tallyhook import __version__
from tallyhook.metric_definitions import DEFINITIONS, LABEL_SETS, Definition, Stage

CounterName = Literal[
    "tallyhook_ingress_accepted_total",
    "tallyhook_ingress_refused_total",
    "tallyhook_ingress_dead_lettered_total",
    "tallyhook_ingress_key_reloads_total",
    "tallyhook_stream_verdicts_total",
    "tallyhook_stream_dead_lettered_total",
    "tallyhook_stream_forgotten_objects_total",
    "tallyhook_sink_verdicts_total",
    "tallyhook_sink_quarantined_total",
    "tallyhook_sink_effects_total",
    "tallyhook_sink_rows_advanced_total",
    "tallyhook_sink_batches_repeated_total",
    "tallyhook_sink_fence_lost_total",
    "tallyhook_sink_reversal_differs_total",
    "tallyhook_sink_fee_differs_total",
    "tallyhook_relay_sent_total",
    "tallyhook_relay_transactions_total",
    "tallyhook_relay_aborted_total",
]
GaugeName = Literal[
    "tallyhook_build_info",
    "tallyhook_ready",
    "tallyhook_ingress_in_flight",
    "tallyhook_ingress_keys",
    "tallyhook_ingress_keys_end_seconds",
    "tallyhook_stream_lag_events",
    "tallyhook_lag_events",
    "tallyhook_lag_seconds",
    "tallyhook_lag_retention_ratio",
    "tallyhook_lag_unknown_seconds",
    "tallyhook_sink_lag_events",
    "tallyhook_sink_lag_seconds",
    "tallyhook_sink_parked",
    "tallyhook_sink_parked_oldest_seconds",
    "tallyhook_sink_quarantined_open",
    "tallyhook_sink_negative_balances",
    "tallyhook_sink_stopped",
    "tallyhook_gaps_open",
    "tallyhook_gaps_oldest_seconds",
    "tallyhook_outbox_unsent_rows",
    "tallyhook_outbox_oldest_seconds",
    "tallyhook_relay_active",
    "tallyhook_relay_halted",
    "tallyhook_relay_backlog_rows",
]
HistogramName = Literal[
    "tallyhook_ingress_publish_seconds",
    "tallyhook_stream_batch_events",
    "tallyhook_stream_batch_seconds",
    "tallyhook_sink_batch_events",
    "tallyhook_sink_batch_seconds",
    "tallyhook_relay_transaction_rows",
    "tallyhook_relay_transaction_seconds",
    "tallyhook_post_to_effect_seconds",
]
TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""The exposition format that every scraper reads."""

_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)

COUNTERS: frozenset[str] = frozenset(get_args(CounterName))
GAUGES: frozenset[str] = frozenset(get_args(GaugeName))
HISTOGRAMS: frozenset[str] = frozenset(get_args(HistogramName))
ALL_NAMES: tuple[str, ...] = (*get_args(CounterName), *get_args(GaugeName), *get_args(HistogramName))

T = TypeVar("T", Counter, Gauge, Histogram)

# A second series beside each counter and histogram, with the moment it was made: nobody asks for it.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The metrics of one process, in a registry of their own; a metric is made when it is first asked for."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}

    def counter(self, name: CounterName, **labels: str) -> Counter:
        """The counter with these labels; raises ValueError for labels that it is not defined with."""
        return self._child(self._counters, name, labels, self._make_counter)

    def gauge(self, name: GaugeName, **labels: str) -> Gauge:
        """The gauge with these labels; raises ValueError for labels that it is not defined with."""
        return self._child(self._gauges, name, labels, self._make_gauge)

    def histogram(self, name: HistogramName, **labels: str) -> Histogram:
        """The histogram with these labels; seconds or sizes, by the last word of its name."""
        return self._child(self._histograms, name, labels, self._make_histogram)

    def prepare(self, stage: Stage, **values: Iterable[str]) -> None:
        """Makes everything that the stage shows, each combination of labels at zero, so that no query finds nothing.

        Args:
            values: those of a label whose set is not fixed by its definition: `partition=...`, `endpoint=...`.

        A metric with a label that is neither fixed nor given here appears once it is measured.
        """
        ProcessCollector(registry=self.registry)
        given = {label: tuple(each) for label, each in values.items()}
        self.gauge("tallyhook_build_info", stage=stage, version=__version__).set(1)
        for name, definition in DEFINITIONS.items():
            if stage in definition.stages and name != "tallyhook_build_info":
                for labels in _combinations(definition, given):
                    self._touch(name, labels)

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """What Prometheus scrapes, and its content type: OpenMetrics where `accept` asks for it, else format 0.0.4."""
        if "application/openmetrics-text" in accept:
            content: bytes = openmetrics.generate_latest(self.registry)  # type: ignore[no-untyped-call]
            return content, openmetrics.CONTENT_TYPE_LATEST
        return generate_latest(self.registry), TEXT

    def _touch(self, name: str, labels: Mapping[str, str]) -> None:
        if name in COUNTERS:
            self._child(self._counters, name, labels, self._make_counter)
        elif name in GAUGES:
            self._child(self._gauges, name, labels, self._make_gauge)
        else:
            self._child(self._histograms, name, labels, self._make_histogram)

    def _make_counter(self, name: str) -> Counter:
        definition = DEFINITIONS[name]
        return Counter(name, definition.meaning, tuple(definition.labels), registry=self.registry)

    def _make_gauge(self, name: str) -> Gauge:
        definition = DEFINITIONS[name]
        return Gauge(name, definition.meaning, tuple(definition.labels), registry=self.registry)

    def _make_histogram(self, name: str) -> Histogram:
        definition = DEFINITIONS[name]
        buckets = _SECONDS if name.endswith("_seconds") else _SIZES
        return Histogram(name, definition.meaning, tuple(definition.labels), buckets=buckets, registry=self.registry)

    def _child(self, made: dict[str, T], name: str, labels: Mapping[str, str], make: Callable[[str], T]) -> T:
        metric = made.get(name)
        if metric is None:
            metric = made[name] = make(name)
        return metric.labels(**labels) if labels else metric


def _combinations(definition: Definition, given: Mapping[str, tuple[str, ...]]) -> Iterator[dict[str, str]]:
    values = [LABEL_SETS[key].values or given.get(label, ()) for label, key in definition.labels.items()]
    for combination in product(*values):
        yield dict(zip(definition.labels, combination, strict=True))
