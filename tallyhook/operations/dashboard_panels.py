"""What the dashboard shows: is it healthy, how late is it, what is stuck (its rows on traffic: `dashboard_traffic.py`).

Queries are written without the variable for the installation; `dashboard.py` puts it in.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["stat", "timeseries"]
Unit = Literal["short", "s", "percentunit", "reqps", "ops"]

THIRD, QUARTER, SIXTH = 8, 6, 4
"""Widths, of 24."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query and what its series are called."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Args:
        meaning: shown at the panel's corner.
        warn_at, page_at: values from which it turns yellow and red, None: never.
        red_below: it is red below this value instead.
    """

    title: str
    meaning: str
    queries: tuple[Query, ...]
    unit: Unit = "short"
    kind: Kind = "timeseries"
    width: int = THIRD
    warn_at: float | None = None
    page_at: float | None = None
    red_below: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


def quantile(share: float, metric: str) -> str:
    """The query of a histogram's quantile, over all processes."""
    return f"histogram_quantile({share:g}, sum by (le) (rate({metric}_bucket[$__rate_interval])))"


def rate(metric: str, *labels: str) -> str:
    """The query of a counter's rate, by labels."""
    by = f" by ({', '.join(labels)})" if labels else ""
    return f"sum{by} (rate({metric}[$__rate_interval]))"


def _stat(title: str, meaning: str, *queries: Query, unit: Unit = "short", **limits: float) -> Panel:
    return Panel(title, meaning, queries, unit, "stat", SIXTH, **limits)


_ACCEPTED = "tallyhook_ingress_accepted_total"
_REFUSED_FOR_NOW = (
    'tallyhook_ingress_refused_total{reason=~"not_confirmed|in_flight|connections|starting|internal|shutting_down"}'
)
_READY = "tallyhook_ready * on (job, instance) group_left (stage) tallyhook_build_info"

HEALTH = Row(
    "Is it healthy?",
    (
        _stat(
            "Ready",
            "The share of each stage's processes that can do their work; /readyz of the others says why not.",
            Query(f"avg by (stage) ({_READY})", "{{stage}}"),
            unit="percentunit",
            red_below=1,
        ),
        _stat(
            "Wait for a person",
            "Loops of sinks and relays that stopped until somebody mends what /readyz names.",
            Query(
                "sum(max by (loop) (tallyhook_sink_stopped)) + sum(max by (reason) (tallyhook_relay_halted))", "stopped"
            ),
            page_at=1,
        ),
        _stat(
            "Answered 503",
            "The share of webhooks that the gateway is told to send again.",
            Query(
                f"{rate(_REFUSED_FOR_NOW)} / clamp_min({rate(_REFUSED_FOR_NOW)} + {rate(_ACCEPTED)}, 0.001)",
                "503",
            ),
            unit="percentunit",
            warn_at=0.01,
            page_at=0.05,
        ),
        _stat(
            "Webhook to effect, median",
            "From the signed POST to the published effect.",
            Query(quantile(0.5, "tallyhook_post_to_effect_seconds"), "median"),
            unit="s",
            warn_at=5,
            page_at=30,
        ),
        _stat(
            "Oldest waiting record",
            "Age of the oldest record that no stage has processed yet, over all topics.",
            Query("max(tallyhook_lag_seconds)", "oldest"),
            unit="s",
            warn_at=30,
            page_at=120,
        ),
        _stat(
            "Starts in the last hour",
            "Processes that were started anew; the log before each tells why the former ended.",
            Query(
                "sum by (stage) (changes(process_start_time_seconds[1h])"
                " * on (job, instance) group_left (stage) tallyhook_build_info)",
                "{{stage}}",
            ),
            warn_at=2,
            page_at=6,
        ),
    ),
)

LATE = Row(
    "How late are we?",
    (
        Panel(
            "Age of the oldest waiting record",
            "events wait for the streams, state-changes and dead-letters for the sinks. Measured by whoever runs.",
            (Query("max by (topic) (tallyhook_lag_seconds)", "{{topic}}"),),
            "s",
            warn_at=30,
            page_at=120,
        ),
        Panel(
            "Waiting records",
            "How many records no stage has processed yet.",
            (Query("sum by (topic) (max by (topic, partition) (tallyhook_lag_events))", "{{topic}}"),),
        ),
        Panel(
            "From webhook to effect",
            "Parked and redriven events are in it, so that the tail is not the road's alone.",
            (
                Query(quantile(0.5, "tallyhook_post_to_effect_seconds"), "median"),
                Query(quantile(0.99, "tallyhook_post_to_effect_seconds"), "99 of 100"),
            ),
            "s",
        ),
        Panel(
            "Time in each part, 99 of 100",
            "The confirmation by Kafka at the door, and a batch of each stage.",
            (
                Query(quantile(0.99, "tallyhook_ingress_publish_seconds"), "door, one webhook"),
                Query(quantile(0.99, "tallyhook_stream_batch_seconds"), "stream, a batch"),
                Query(quantile(0.99, "tallyhook_sink_batch_seconds"), "sink, a transaction"),
                Query(quantile(0.99, "tallyhook_relay_transaction_seconds"), "relay, a transaction"),
            ),
            "s",
        ),
        Panel(
            "Share of the retention used up",
            "At 100 % records go that no stage has read.",
            (Query("max by (topic) (tallyhook_lag_retention_ratio)", "{{topic}}"),),
            "percentunit",
            warn_at=0.25,
            page_at=0.5,
        ),
        Panel(
            "Lag last known before",
            "Grows while no process can ask Kafka.",
            (Query("min by (topic) (tallyhook_lag_unknown_seconds)", "{{topic}}"),),
            "s",
            page_at=120,
        ),
    ),
)

STUCK = Row(
    "What is stuck?",
    (
        Panel(
            "Parked events",
            "Wait for a deposit's correlation or a withdrawal's snapshot: `tallyhook parked`.",
            (Query("sum by (reason) (tallyhook_sink_parked)", "{{reason}}"),),
            width=QUARTER,
        ),
        Panel(
            "Oldest parked event",
            "Over 92 h the gateway has ended its own attempts.",
            (Query("max(tallyhook_sink_parked_oldest_seconds)", "oldest"),),
            "s",
            width=QUARTER,
            warn_at=3600,
            page_at=331_200,
        ),
        Panel(
            "Quarantined events",
            "Wait for somebody: `tallyhook quarantine list`.",
            (Query("max(tallyhook_sink_quarantined_open)", "open"),),
            width=QUARTER,
            warn_at=1,
        ),
        Panel(
            "Set aside, by reason",
            "Events a second that were quarantined, dead letters included.",
            (Query(rate("tallyhook_sink_quarantined_total", "reason") + " > 0 or vector(0)", "{{reason}}"),),
            "ops",
            width=QUARTER,
        ),
        Panel(
            "Outbox rows not sent",
            "As the database knows it: whichever relay should.",
            (Query("max(tallyhook_outbox_unsent_rows)", "rows"),),
            width=QUARTER,
        ),
        Panel(
            "Oldest row not sent",
            "Effects wait for a relay.",
            (Query("max(tallyhook_outbox_oldest_seconds)", "oldest"),),
            "s",
            width=QUARTER,
            warn_at=30,
            page_at=120,
        ),
        Panel(
            "Relays at work",
            "1 for each shard whose lease a relay holds.",
            (Query("max by (shard) (tallyhook_relay_active)", "shard {{shard}}"),),
            width=QUARTER,
            red_below=1,
        ),
        Panel(
            "Missing numbers of the sequence",
            "`tallyhook gaps` lists them; alarmed after 4 days.",
            (Query("max(tallyhook_gaps_open)", "open"),),
            width=QUARTER,
        ),
        Panel(
            "Oldest missing number",
            "How long the gateway has owed it.",
            (Query("max(tallyhook_gaps_oldest_seconds)", "oldest"),),
            "s",
            width=QUARTER,
            page_at=345_600,
        ),
        Panel(
            "Users with a negative balance",
            "A reversal took back what had been spent.",
            (Query("max(tallyhook_sink_negative_balances)", "users"),),
            width=QUARTER,
            warn_at=1,
        ),
        Panel(
            "Loops and relays that stopped",
            "1: somebody must mend what /readyz names.",
            (
                Query("max by (loop) (tallyhook_sink_stopped)", "sink: {{loop}}"),
                Query("max by (reason) (tallyhook_relay_halted)", "relay: {{reason}}"),
            ),
            width=2 * QUARTER,
            page_at=1,
        ),
    ),
)
