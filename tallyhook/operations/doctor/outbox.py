"""What the relay needs: progress that agrees with the outbox, the fixed number of shards, somebody who sends."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from sinks.relay import progress
from tallyhook.errors import OutboxRewound, PositionLost
from tallyhook.operations.doctor.broker import Topic
from tallyhook.operations.doctor.database import Database
from tallyhook.operations.doctor.findings import Finding
from tallyhook.settings import Settings

T = TypeVar("T")


def examine_progress(settings: Settings, database: Database, topic: Topic) -> Iterator[Finding]:
    """Partitions whose progress in Kafka and rows in the database do not agree; nothing is changed.

    A relay that works moves on and prunes rows meanwhile, so only what a second look finds as well is a finding.
    Raises KafkaUnavailable when the end of the progress is not reached.
    """
    suspects = _disagreements(settings, database, topic.name, range(topic.partitions))
    for partition, words in (
        _disagreements(settings, database, topic.name, list(suspects)) if suspects else {}
    ).items():
        yield Finding(
            "relay_progress",
            "breaks",
            ("P2",),
            f"partition {partition} of {topic.name}",
            words,
            "the last row sent, with the id that the outbox has for it",
            "the relay stops, for going on would send effects twice or not at all",
            "restore what lost its last writes, then restart the relay and look with tallyhook audit",
        )


def _disagreements(settings: Settings, database: Database, topic: str, partitions: Sequence[int]) -> dict[int, str]:
    """In words by partition. The cursors are read first, since they follow the progress."""
    cursors = database.cursors()
    seconds = settings.kafka.request_timeout_seconds
    try:
        found = progress.read(settings.kafka, topic, partitions, timeout_seconds=seconds)
    except PositionLost as foreign:
        # Somebody else wrote there: partition by partition, so that the others are judged all the same.
        if len(partitions) == 1:
            return {partitions[0]: str(foreign)}
        alone = (_disagreements(settings, database, topic, [partition]) for partition in partitions)
        return {partition: words for wrong in alone for partition, words in wrong.items()}
    ids = database.row_ids({partition: position.seq for partition, position in found.items()})
    wrong = {}
    for partition in partitions:
        try:
            progress.check(topic, _only(partition, found), _only(partition, cursors), _only(partition, ids))
        except (PositionLost, OutboxRewound) as failure:
            wrong[partition] = str(failure)
    return wrong


def _only(partition: int, among: Mapping[int, T]) -> dict[int, T]:
    return {partition: among[partition]} if partition in among else {}


def examine_relays(settings: Settings, database: Database) -> Iterator[Finding]:
    """A number of shards that differs from the fixed one, and rows that nobody sends."""
    fixed, wanted = database.shards(), settings.relay.shards
    if fixed is not None and fixed != wanted:
        yield Finding(
            "relay_shards",
            "breaks",
            ("P2", "P8"),
            "the relay",
            f"TALLYHOOK_RELAY_SHARDS={wanted}",
            f"TALLYHOOK_RELAY_SHARDS={fixed}, as fixed when the first relay started",
            "relays refuse to start: one partition must not be sent by two",
            f"set TALLYHOOK_RELAY_SHARDS={fixed}",
        )
    if unsent := database.unsent():
        yield Finding(
            "relay_idle",
            "warning",
            ("P8",),
            "the relay",
            f"no relay has partitions {', '.join(map(str, unsent))}, where {sum(unsent.values())} rows wait",
            "one relay for each shard",
            "effects are not sent",
            "tallyhook relay",
        )


def examine_sequences(settings: Settings, database: Database) -> Iterator[Finding]:
    """Numbers of the gateway's sequence that nobody keeps; an installation for test events keeps none."""
    ever, now = database.sequences()
    if settings.installation.livemode and ever and not now:
        yield Finding(
            "sequences_unkept",
            "warning",
            ("P1",),
            "the gateway's sequence",
            "no sink keeps its numbers now",
            "a sink that keeps them",
            "an event that the gateway never delivered is not noticed",
            "tallyhook sink",
        )
