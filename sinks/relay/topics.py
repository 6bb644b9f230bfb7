"""The topics the relay writes to: they must be the ones that were installed, with the partition count of the outbox."""

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, TopicCollection

from schemas.effects import EFFECTS
from schemas.topics import TopicNames
from tallyhook import kafka
from tallyhook.errors import KafkaUnavailable, SchemaMismatch, TopicMismatch
from tallyhook.settings import Settings


def needed(names: TopicNames) -> list[str]:
    """What this program writes to."""
    return [*(names.effect(effect) for effect in EFFECTS), names.balance_entries, names.relay_progress]


def check(settings: Settings, installed: Mapping[str, tuple[str, int]], *, timeout_seconds: float) -> frozenset[str]:
    """The names of all topics that rows may go to: those of this program, and effects installed by a newer one.

    Args:
        installed: id and partition count of each topic at its installation.

    Raises:
        SchemaMismatch: `tallyhook topics apply` has not run yet.
        TopicMismatch: a topic is not the one that was installed.
        KafkaUnavailable: ask again.
    """
    names = TopicNames(settings.installation.topic_prefix)
    own = needed(names)
    if absent := [name for name in own if name not in installed]:
        raise SchemaMismatch(f"topics are not installed yet ({', '.join(absent)}): run `tallyhook topics apply`")
    mine = [name for name in installed if name in own or name.startswith(names.effect(""))]
    found = _describe(settings, mine, timeout_seconds)
    for name in mine:
        _compare(name, installed[name], found.get(name), settings.installation.partitions)
    return frozenset(mine) - {names.relay_progress}


def _describe(settings: Settings, topics: list[str], timeout_seconds: float) -> dict[str, tuple[str, int]]:
    """Id and partition count of the topics that exist."""
    found: dict[str, tuple[str, int]] = {}
    client = kafka.admin(settings.kafka)  # its answers end with it, so it must outlive them
    try:
        asked = client.describe_topics(TopicCollection(topics), request_timeout=timeout_seconds)
        for name, answer in asked.items():
            try:
                description = answer.result(timeout_seconds)
            except KafkaException as failure:
                if failure.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    reason = kafka.words(failure.args[0])
                    raise KafkaUnavailable(f"topic {name} cannot be described: {reason}") from failure
            else:
                found[name] = (str(description.topic_id), len(description.partitions))
    except (KafkaException, TimeoutError) as failure:
        raise KafkaUnavailable(f"topics cannot be described: {failure}") from failure
    return found


def _compare(name: str, installed: tuple[str, int], found: tuple[str, int] | None, partitions: int) -> None:
    if found is None:
        raise TopicMismatch(
            f"topic {name} was installed and is gone: restore it, or install under a new prefix and schema"
        )
    if found != installed:
        raise TopicMismatch(
            f"topic {name} is not the one that was installed (id {installed[0]}, {installed[1]} partitions; now id"
            f" {found[0]}, {found[1]} partitions): restore it, or install under a new prefix and schema"
        )
    if found[1] != partitions:
        raise TopicMismatch(
            f"topic {name} has {found[1]} partitions, TALLYHOOK_PARTITIONS says {partitions}: set it back; growth is a"
            " drain into a new prefix"
        )


def unknown_effect(effect: str, partition: int, seq: int) -> TopicMismatch:
    """A row names an effect without a topic: it is never skipped."""
    return TopicMismatch(
        f"outbox partition {partition}, row {seq} is the effect {effect!r}, for which no topic is installed: run"
        " `tallyhook topics apply` of the version that wrote the row, then restart the relay"
    )
