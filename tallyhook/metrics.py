"""Every metric's name stands in one Literal; labels are bounded, so that no sender can make series grow."""

from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

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
    "tallyhook_ready",
    "tallyhook_ingress_in_flight",
    "tallyhook_ingress_keys",
    "tallyhook_stream_lag_events",
    "tallyhook_sink_lag_events",
    "tallyhook_sink_lag_seconds",
    "tallyhook_sink_parked",
    "tallyhook_sink_parked_oldest_seconds",
    "tallyhook_sink_quarantined_open",
    "tallyhook_sink_stopped",
    "tallyhook_gaps_open",
    "tallyhook_gaps_oldest_seconds",
    "tallyhook_relay_active",
    "tallyhook_relay_backlog_rows",
]
HistogramName = Literal[
    "tallyhook_ingress_publish_seconds",
    "tallyhook_stream_batch_events",
    "tallyhook_sink_batch_events",
    "tallyhook_sink_batch_seconds",
    "tallyhook_relay_transaction_rows",
    "tallyhook_relay_transaction_seconds",
    "tallyhook_post_to_effect_seconds",
]

_MEANINGS: dict[str, str] = {
    "tallyhook_ingress_accepted_total": "Webhooks answered 200 after all in-sync replicas had the bytes.",
    "tallyhook_ingress_refused_total": "Requests refused, by reason.",
    "tallyhook_ingress_dead_lettered_total": "Authentic events whose envelope is unusable, by reason.",
    "tallyhook_ingress_key_reloads_total": "Times the keyring was read anew, by outcome: changed or failed.",
    "tallyhook_stream_verdicts_total": "Deliveries passed on, by the stream's verdict.",
    "tallyhook_stream_dead_lettered_total": "Records of the events topic that could not be judged, by reason.",
    "tallyhook_stream_forgotten_objects_total": "Objects whose versions were forgotten, untouched for too long.",
    "tallyhook_sink_verdicts_total": "Events, by the sink's verdict.",
    "tallyhook_sink_quarantined_total": "Events set aside, by reason.",
    "tallyhook_sink_rows_advanced_total": "Aggregates whose version rose.",
    "tallyhook_sink_batches_repeated_total": "Batches rolled back and decided anew, by cause.",
    "tallyhook_sink_fence_lost_total": "Batches refused because another worker owned a partition.",
    "tallyhook_sink_reversal_differs_total": "Reversals whose snapshot names another amount than the credit.",
    "tallyhook_sink_fee_differs_total": "Chunks of withdrawals whose fee is not what the running total gives.",
    "tallyhook_relay_sent_total": "Effects published, by effect.",
    "tallyhook_relay_transactions_total": "Kafka transactions committed by the relay.",
    "tallyhook_relay_aborted_total": "Kafka transactions aborted and sent again.",
    "tallyhook_ready": "1 when the process can do its work.",
    "tallyhook_ingress_in_flight": "Requests being worked on.",
    "tallyhook_ingress_keys": "Public keys that vouch for webhooks now, by endpoint.",
    "tallyhook_stream_lag_events": "Events not yet judged, by partition.",
    "tallyhook_sink_lag_events": "State changes not yet applied, by partition.",
    "tallyhook_sink_lag_seconds": "Age of the oldest state change not yet applied.",
    "tallyhook_sink_parked": "Parked events, by reason.",
    "tallyhook_sink_parked_oldest_seconds": "Age of the oldest parked event.",
    "tallyhook_sink_quarantined_open": "Quarantined events nobody has resolved.",
    "tallyhook_sink_stopped": "1 while somebody must mend what stopped it (/readyz says what), by loop.",
    "tallyhook_gaps_open": "Numbers of the gateway's sequence that are missing; every sink shows the same.",
    "tallyhook_gaps_oldest_seconds": "Age of the oldest open gap; every sink shows the same.",
    "tallyhook_relay_active": "1 when this relay holds its shard's lease, 0 when it stands by.",
    "tallyhook_relay_backlog_rows": "Outbox rows not yet sent, by partition.",
    "tallyhook_ingress_publish_seconds": "Seconds from the verified request to the confirmed record.",
    "tallyhook_stream_batch_events": "Events a batch of the stream.",
    "tallyhook_sink_batch_events": "Events a transaction of the sink.",
    "tallyhook_sink_batch_seconds": "Seconds a transaction of the sink.",
    "tallyhook_relay_transaction_rows": "Outbox rows a Kafka transaction.",
    "tallyhook_relay_transaction_seconds": "Seconds a Kafka transaction of the relay.",
    "tallyhook_post_to_effect_seconds": "Seconds from the signed POST to the published effect.",
}
_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


class Metrics:
    """The metrics of one process, in a registry of their own; a metric is made when it is first asked for."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}

    def counter(self, name: CounterName, **labels: str) -> Counter:
        """The counter with these labels; the names of the labels are fixed by the first call."""
        made = self._counters.get(name)
        if made is None:
            made = self._counters[name] = Counter(name, _MEANINGS[name], tuple(labels), registry=self.registry)
        return made.labels(**labels) if labels else made

    def gauge(self, name: GaugeName, **labels: str) -> Gauge:
        """The gauge with these labels; the names of the labels are fixed by the first call."""
        made = self._gauges.get(name)
        if made is None:
            made = self._gauges[name] = Gauge(name, _MEANINGS[name], tuple(labels), registry=self.registry)
        return made.labels(**labels) if labels else made

    def histogram(self, name: HistogramName, **labels: str) -> Histogram:
        """The histogram with these labels; seconds or sizes, by the last word of its name."""
        made = self._histograms.get(name)
        if made is None:
            buckets = _SECONDS if name.endswith("_seconds") else _SIZES
            made = self._histograms[name] = Histogram(
                name, _MEANINGS[name], tuple(labels), buckets=buckets, registry=self.registry
            )
        return made.labels(**labels) if labels else made

    def exposition(self) -> bytes:
        """The text that Prometheus scrapes (exposition format 0.0.4)."""
        return generate_latest(self.registry)


ALL_NAMES: tuple[str, ...] = (*get_args(CounterName), *get_args(GaugeName), *get_args(HistogramName))
