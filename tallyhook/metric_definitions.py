"""What each metric means, who shows it, and which labels it has: every label has a bounded set of values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from schemas.effects import BALANCE_ENTRY, EFFECTS
from schemas.reasons import DeadLetterReason, QuarantineReason
from schemas.verdicts import ParkedReason, SinkVerdict, StreamVerdict

Stage = Literal["ingress", "stream", "sink", "relay"]
STAGES: tuple[Stage, ...] = get_args(Stage)
LagTopic = Literal["events", "state-changes", "dead-letters"]
RelayHalt = Literal["outbox_gap", "outbox_rewound", "position_lost", "topic_mismatch"]


@dataclass(frozen=True, slots=True)
class LabelSet:
    """The values a label may have.

    Args:
        meaning: for the page.
        values: where they are fixed; else the process names them when it starts, or the installation bounds them.
    """

    meaning: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric.

    Args:
        stages: whose processes show it.
        labels: name to the set of its values (a key of LABEL_SETS).
    """

    meaning: str
    stages: tuple[Stage, ...]
    labels: Mapping[str, str]


LABEL_SETS: dict[str, LabelSet] = {
    "refusal": LabelSet("the reasons of the door (docs/http.md)"),
    "reload": LabelSet("changed or failed", ("changed", "failed")),
    "endpoint": LabelSet("names of the configured endpoints"),
    "dead letter": LabelSet("reasons of dead letters", get_args(DeadLetterReason)),
    "set aside": LabelSet(
        "reasons of dead letters and of quarantine", (*get_args(DeadLetterReason), *get_args(QuarantineReason))
    ),
    "stream verdict": LabelSet("verdicts of the stream", get_args(StreamVerdict)),
    "sink verdict": LabelSet("verdicts of the sink", get_args(SinkVerdict)),
    "parked": LabelSet("what is waited for", get_args(ParkedReason)),
    "repetition": LabelSet("why a transaction was rolled back", ("conflict", "deadlock", "refused", "serialisation")),
    "loop": LabelSet("the loops of a sink", ("state-changes", "dead-letters", "correlations", "sequences")),
    "effect": LabelSet("effects, and balance_entry", (*EFFECTS, BALANCE_ENTRY)),
    "lag topic": LabelSet("topics that a stage reads", get_args(LagTopic)),
    "halt": LabelSet("what only a person can mend", get_args(RelayHalt)),
    "partition": LabelSet("0 .. TALLYHOOK_PARTITIONS - 1"),
    "shard": LabelSet("0 .. TALLYHOOK_RELAY_SHARDS - 1"),
    "version": LabelSet("the installed version"),
    "stage": LabelSet("ingress, stream, sink, relay", STAGES),
}

_WATCHING: tuple[Stage, ...] = ("stream", "sink", "relay")


def _of(stages: Stage | tuple[Stage, ...], meaning: str, **labels: str) -> Definition:
    return Definition(meaning, (stages,) if isinstance(stages, str) else stages, labels)


DEFINITIONS: dict[str, Definition] = {
    "tallyhook_build_info": _of(STAGES, "Always 1: which stage and version this is.", stage="stage", version="version"),
    "tallyhook_ready": _of(STAGES, "1 when the process can do its work; /readyz says why not."),
    "tallyhook_ingress_accepted_total": _of("ingress", "Webhooks answered 200, once all in-sync replicas had them."),
    "tallyhook_ingress_refused_total": _of("ingress", "Requests refused, by reason.", reason="refusal"),
    "tallyhook_ingress_dead_lettered_total": _of(
        "ingress", "Authentic events whose envelope is unusable, by reason.", reason="dead letter"
    ),
    "tallyhook_ingress_key_reloads_total": _of(
        "ingress", "Times the keyring was read anew, by outcome: changed or failed.", outcome="reload"
    ),
    "tallyhook_ingress_in_flight": _of("ingress", "Requests being worked on."),
    "tallyhook_ingress_keys": _of("ingress", "Public keys that vouch for webhooks now.", endpoint="endpoint"),
    "tallyhook_ingress_keys_end_seconds": _of(
        "ingress", "Seconds until no key vouches any more; +Inf where one has no end.", endpoint="endpoint"
    ),
    "tallyhook_ingress_publish_seconds": _of("ingress", "Seconds from the verified request to the confirmed record."),
    "tallyhook_stream_verdicts_total": _of("stream", "Deliveries passed on, by verdict.", verdict="stream verdict"),
    "tallyhook_stream_dead_lettered_total": _of(
        "stream", "Records of the events topic that could not be judged, by reason.", reason="dead letter"
    ),
    "tallyhook_stream_forgotten_objects_total": _of(
        "stream", "Objects whose versions were forgotten, untouched for too long."
    ),
    "tallyhook_stream_lag_events": _of(
        "stream", "Events not yet judged, of the partitions this process owns.", partition="partition"
    ),
    "tallyhook_stream_batch_events": _of("stream", "Events a batch of the stream."),
    "tallyhook_stream_batch_seconds": _of("stream", "Seconds a batch of the stream, until it may be acked."),
    "tallyhook_lag_events": _of(
        _WATCHING,
        "Records not yet processed, whoever should: shown by every process of stream, sink and relay.",
        topic="lag topic",
        partition="partition",
    ),
    "tallyhook_lag_seconds": _of(
        _WATCHING, "Age of the oldest record not yet processed, over all partitions.", topic="lag topic"
    ),
    "tallyhook_lag_retention_ratio": _of(
        _WATCHING, "That age as a share of the topic's retention: at 1 records go unread.", topic="lag topic"
    ),
    "tallyhook_lag_unknown_seconds": _of(
        _WATCHING, "Seconds since the lag was last measured; grows while Kafka does not answer.", topic="lag topic"
    ),
    "tallyhook_sink_verdicts_total": _of("sink", "Events, by the sink's verdict.", verdict="sink verdict"),
    "tallyhook_sink_quarantined_total": _of(
        "sink", "Events set aside, copied dead letters included, by reason.", reason="set aside"
    ),
    "tallyhook_sink_effects_total": _of("sink", "Effects and balance entries written to the outbox.", effect="effect"),
    "tallyhook_sink_rows_advanced_total": _of("sink", "Aggregates whose version rose."),
    "tallyhook_sink_batches_repeated_total": _of(
        "sink", "Transactions rolled back and decided anew, by cause.", cause="repetition"
    ),
    "tallyhook_sink_fence_lost_total": _of("sink", "Batches refused because another worker owned a partition."),
    "tallyhook_sink_reversal_differs_total": _of(
        "sink", "Reversals whose snapshot names another amount than the credit."
    ),
    "tallyhook_sink_fee_differs_total": _of(
        "sink", "Chunks of withdrawals whose fee is not what the running total gives."
    ),
    "tallyhook_sink_lag_events": _of(
        "sink", "State changes not yet applied, of the partitions this process owns.", partition="partition"
    ),
    "tallyhook_sink_lag_seconds": _of("sink", "Age of the oldest state change this process has not yet applied."),
    "tallyhook_sink_parked": _of("sink", "Parked events of the partitions this process owns.", reason="parked"),
    "tallyhook_sink_parked_oldest_seconds": _of("sink", "Age of the oldest parked event."),
    "tallyhook_sink_quarantined_open": _of("sink", "Quarantined events not resolved; every sink shows the same."),
    "tallyhook_sink_negative_balances": _of("sink", "Users whose balance is below zero; every sink shows the same."),
    "tallyhook_sink_stopped": _of(
        "sink", "1 while somebody must mend what stopped it (/readyz says what).", loop="loop"
    ),
    "tallyhook_sink_batch_events": _of("sink", "Events a transaction of the sink."),
    "tallyhook_sink_batch_seconds": _of("sink", "Seconds a transaction of the sink."),
    "tallyhook_gaps_open": _of("sink", "Missing numbers of the gateway's sequence; every sink shows the same."),
    "tallyhook_gaps_oldest_seconds": _of("sink", "Age of the oldest open gap; every sink shows the same."),
    "tallyhook_outbox_unsent_rows": _of(
        "sink", "Outbox rows not yet sent, whichever relay should; every sink shows the same."
    ),
    "tallyhook_outbox_oldest_seconds": _of("sink", "Age of the oldest of them; every sink shows the same."),
    "tallyhook_relay_sent_total": _of("relay", "Effects published, by effect.", effect="effect"),
    "tallyhook_relay_transactions_total": _of("relay", "Kafka transactions committed by the relay."),
    "tallyhook_relay_aborted_total": _of("relay", "Kafka transactions aborted and sent again."),
    "tallyhook_relay_active": _of(
        "relay", "1 when this relay holds its shard's lease, 0 when it stands by.", shard="shard"
    ),
    "tallyhook_relay_halted": _of(
        "relay", "1 while somebody must mend what stopped it (/readyz says what).", reason="halt"
    ),
    "tallyhook_relay_backlog_rows": _of("relay", "Outbox rows of the shard not yet sent.", partition="partition"),
    "tallyhook_relay_transaction_rows": _of("relay", "Outbox rows a Kafka transaction."),
    "tallyhook_relay_transaction_seconds": _of("relay", "Seconds a Kafka transaction of the relay."),
    "tallyhook_post_to_effect_seconds": _of(
        "relay", "Seconds from the signed POST to the published effect; parked and redriven events included."
    ),
}
