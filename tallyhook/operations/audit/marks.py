"""What is noted before the snapshot: how far each stage says that it got, and what the topics hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException, TopicPartition

from schemas.effects import EFFECTS
from schemas.topics import TopicNames
from sinks.relay import progress
from tallyhook import kafka
from tallyhook.errors import KafkaUnavailable
from tallyhook.operations.audit.topic_ranges import Range, watermarks
from tallyhook.settings import Settings

PATIENCE_SECONDS = 30.0
"""How long nothing may come of a topic, beyond the time after which the broker ends an abandoned transaction."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Positions in the topics by partition, each noted before what it depends on could move past it.

    Args:
        committed: the stream's position in `events`; absent before its first commit.
        sent: the last outbox number that the relay has sent; absent where nothing was.
        events, state_changes, dead_letters: what these topics held, noted after `committed`.
        effects: the same of each topic that takes outbox rows, noted after `sent`.
    """

    committed: Mapping[int, int]
    sent: Mapping[int, int]
    events: Mapping[int, Range]
    state_changes: Mapping[int, Range]
    dead_letters: Mapping[int, Range]
    effects: Mapping[str, Mapping[int, Range]]


def effect_topics(names: TopicNames) -> dict[str, str]:
    """Every topic that takes outbox rows, with the rows' `topic` column."""
    return {names.effect(effect): effect for effect in EFFECTS} | {names.balance_entries: "balance_entry"}


def patience_seconds(settings: Settings) -> float:
    """How long to wait for records that must come: an abandoned transaction hides them until the broker ends it."""
    return settings.relay.transaction_timeout_seconds + PATIENCE_SECONDS


def note(settings: Settings) -> Marks:
    """Notes the positions, in the order that lets the pipeline go on: what follows from a position is asked after it.

    The snapshot of the database must be taken afterwards. Raises KafkaUnavailable.
    """
    names = TopicNames(settings.installation.topic_prefix)
    partitions = list(range(settings.installation.partitions))
    began = watermarks(settings.kafka, names.events, partitions)
    committed = _committed(settings, names.events, partitions)
    held = watermarks(settings.kafka, names.events, partitions)
    state_changes = watermarks(settings.kafka, names.state_changes, partitions)
    dead_letters = watermarks(settings.kafka, names.dead_letters, partitions)
    known = progress.read(settings.kafka, names.relay_progress, partitions, timeout_seconds=patience_seconds(settings))
    return Marks(
        committed=committed,
        sent={number: position.seq for number, position in known.items()},
        events={number: Range(began[number].start, held[number].end) for number in partitions},
        state_changes=state_changes,
        dead_letters=dead_letters,
        effects={topic: watermarks(settings.kafka, topic, partitions) for topic in effect_topics(names)},
    )


def _committed(settings: Settings, topic: str, partitions: Sequence[int]) -> dict[int, int]:
    """The stream's committed offsets, asked for without joining its group."""
    group = settings.installation.group_id("streams")
    reader = kafka.plain_reader(settings.kafka, **{"group.id": group})
    seconds = settings.kafka.request_timeout_seconds
    try:
        asked = reader.committed([TopicPartition(topic, number) for number in partitions], timeout=seconds)
        for answer in asked:
            if answer.error is not None:
                raise KafkaException(answer.error)
    except KafkaException as failure:
        reason = kafka.why_no_positions(reader, failure.args[0], group)
        raise KafkaUnavailable(f"committed offsets of {topic}, {reason}") from failure
    finally:
        reader.close()
    # A negative offset is librdkafka's word for no commit.
    return {answer.partition: answer.offset for answer in asked if answer.offset >= 0}
