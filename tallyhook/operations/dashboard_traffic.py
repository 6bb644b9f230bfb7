"""The dashboard's rows about traffic: what the gateway sends, and what the stages make of it."""

from tallyhook.operations.dashboard_panels import QUARTER, Panel, Query, Row, rate

GATEWAY = Row(
    "How does the gateway behave?",
    (
        Panel(
            "Webhooks",
            "Accepted: durable in Kafka. Refused: any answer but 200.",
            (
                Query(rate("tallyhook_ingress_accepted_total"), "accepted"),
                Query(rate("tallyhook_ingress_refused_total"), "refused"),
            ),
            "reqps",
        ),
        Panel(
            "Refused, by reason",
            "docs/http.md explains the reasons; `timestamp` is authentic but out of tolerance.",
            (Query(rate("tallyhook_ingress_refused_total", "reason") + " > 0 or vector(0)", "{{reason}}"),),
            "reqps",
        ),
        Panel(
            "Deliveries, by the stream's verdict",
            "redelivered: sent before. late: older than what was seen already.",
            (Query(rate("tallyhook_stream_verdicts_total", "verdict"), "{{verdict}}"),),
            "ops",
        ),
        Panel(
            "Events nobody can read",
            "Authentic, but with an envelope that breaks the contract.",
            (
                Query(rate("tallyhook_ingress_dead_lettered_total", "reason") + " > 0 or vector(0)", "{{reason}}"),
                Query(rate("tallyhook_stream_dead_lettered_total"), "at the stream"),
            ),
            "ops",
            width=QUARTER,
        ),
        Panel(
            "Other amounts than are due",
            "Reversals and fees whose amount contradicts what was recorded.",
            (
                Query(rate("tallyhook_sink_reversal_differs_total"), "reversals"),
                Query(rate("tallyhook_sink_fee_differs_total"), "fees"),
            ),
            "ops",
            width=QUARTER,
        ),
        Panel(
            "Keys that vouch",
            "By endpoint; with none every webhook is refused.",
            (Query("min by (endpoint) (tallyhook_ingress_keys)", "{{endpoint}}"),),
            width=QUARTER,
            red_below=1,
        ),
        Panel(
            "Until the last key ends",
            "+Inf where a key has no end.",
            (Query("min by (endpoint) (tallyhook_ingress_keys_end_seconds)", "{{endpoint}}"),),
            "s",
            width=QUARTER,
        ),
    ),
)

WORK = Row(
    "What do the stages do?",
    (
        Panel(
            "Events, by the sink's verdict",
            "advanced changed an object; late and redelivered did not.",
            (Query(rate("tallyhook_sink_verdicts_total", "verdict"), "{{verdict}}"),),
            "ops",
        ),
        Panel(
            "Effects",
            "Written to the outbox, and sent. Apart for long: the relay is late.",
            (
                Query(rate("tallyhook_sink_effects_total"), "written"),
                Query(rate("tallyhook_relay_sent_total"), "sent"),
            ),
            "ops",
        ),
        Panel(
            "Effects sent, by name",
            "balance_entry: credits and debits.",
            (Query(rate("tallyhook_relay_sent_total", "effect"), "{{effect}}"),),
            "ops",
        ),
        Panel(
            "Events a batch, mean",
            "Large batches are cheap: they grow when a stage has work to catch up with.",
            tuple(
                Query(f"{rate(f'{metric}_sum')} / clamp_min({rate(f'{metric}_count')}, 0.001)", legend)
                for metric, legend in (
                    ("tallyhook_stream_batch_events", "stream"),
                    ("tallyhook_sink_batch_events", "sink"),
                    ("tallyhook_relay_transaction_rows", "relay"),
                )
            ),
            width=QUARTER,
        ),
        Panel(
            "Done again",
            "Transactions that met somebody else's commit, a lost fence, or a broker that went away.",
            (
                Query(rate("tallyhook_sink_batches_repeated_total", "cause"), "sink: {{cause}}"),
                Query(rate("tallyhook_sink_fence_lost_total"), "sink: fence lost"),
                Query(rate("tallyhook_relay_aborted_total"), "relay: aborted"),
            ),
            "ops",
            width=QUARTER,
        ),
        Panel(
            "Requests at the door",
            "Being worked on at this moment, over all doors.",
            (Query("sum(tallyhook_ingress_in_flight)", "in flight"),),
            width=QUARTER,
        ),
        Panel(
            "Rows and objects",
            "Aggregates whose version rose, relay transactions, and objects that the streams forgot.",
            (
                Query(rate("tallyhook_sink_rows_advanced_total"), "rows advanced"),
                Query(rate("tallyhook_relay_transactions_total"), "relay transactions"),
                Query(rate("tallyhook_stream_forgotten_objects_total"), "objects forgotten"),
            ),
            "ops",
            width=QUARTER,
        ),
    ),
)
