"""Stored positions against what the topics hold: one outside of its topic's range stops the stage that reads there."""

from collections.abc import Iterator, Mapping, Sequence

from streams.positions import Position as StreamPosition
from streams.positions import Positions
from tallyhook.errors import PositionLost
from tallyhook.operations.doctor.broker import Topic
from tallyhook.operations.doctor.database import SinkPosition
from tallyhook.operations.doctor.findings import Finding

_SKIPPED = "going on from there would lose events without a word, so the sink stops at this partition"
Ends = Mapping[tuple[str, int], int]


def examine_sink(
    topics: Sequence[Topic], positions: Sequence[SinkPosition], lows: Ends, highs: Ends
) -> Iterator[Finding]:
    """Positions of the sink that name records which are not there.

    The ends are to be asked for around the positions, lows before and highs after: all three move.

    Args:
        topics: those that the sink reads under its fence.
        positions: of any topic.
    """
    stored = {(position.topic, position.partition): position for position in positions}
    for topic in topics:
        for partition in range(topic.partitions):
            place = (topic.name, partition)
            position, low, high = stored.get(place), lows.get(place), highs.get(place)
            if low is None or high is None:
                continue
            if position is not None and position.topic_id != topic.topic_id:
                yield _foreign(position, topic)
                continue
            next_offset = position.next_offset if position is not None else 0
            if not low <= next_offset <= high:
                yield _lost(topic, partition, next_offset, low, high)


def waiting(topics: Sequence[Topic], positions: Sequence[SinkPosition], highs: Ends) -> dict[tuple[str, int], int]:
    """Up to where each partition is applied behind which records wait."""
    stored = {(position.topic, position.partition): position.next_offset for position in positions}
    places = [(topic.name, partition) for topic in topics for partition in range(topic.partitions)]
    return {place: stored.get(place, 0) for place in places if stored.get(place, 0) < highs.get(place, 0)}


def examine_idle(still: Ends, highs: Ends, seconds: float) -> Iterator[Finding]:
    """Partitions behind whose positions records wait and that did not move while it was looked, by topic.

    Args:
        still: up to where each of them is applied.
    """
    for topic in sorted({name for name, _ in still}):
        behind = {place: offset for place, offset in still.items() if place[0] == topic}
        records = sum(highs[place] - offset for place, offset in behind.items())
        numbers = ", ".join(str(number) for _, number in sorted(behind))
        yield Finding(
            "sink_idle",
            "warning",
            ("P8",),
            f"partitions {numbers} of {topic}",
            f"{records} records wait, and nothing was applied for {seconds:g} s",
            "a sink that applies what comes",
            "no event has an effect until it goes on, and records that stay longer than their retention are lost",
            "ask the sink's /readyz why it stands still; see `tallyhook quarantine list`; start one where none runs",
        )


def _foreign(position: SinkPosition, topic: Topic) -> Finding:
    return Finding(
        "sink_position",
        "breaks",
        ("P1", "P2"),
        f"partition {position.partition} of {topic.name}",
        f"applied up to {position.next_offset} of the topic with id {position.topic_id}",
        f"a position in the topic that is there, id {topic.topic_id}",
        _SKIPPED,
        "restore the topic, or install under another TALLYHOOK_TOPIC_PREFIX and TALLYHOOK_SCHEMA:"
        " tallyhook migrate && tallyhook topics apply",
    )


def _lost(topic: Topic, partition: int, next_offset: int, low: int, high: int) -> Finding:
    if next_offset < low:
        found = (
            f"applied up to {next_offset}, the topic begins at {low}:"
            f" records {next_offset} to {low - 1} ({low - next_offset}) are gone"
        )
    else:
        found = f"applied up to {next_offset}, the topic ends at {high}: the broker lost {next_offset - high} records"
    other = "" if topic.name.endswith(".state-changes") else " --topic dead-letters"
    return Finding(
        "sink_position",
        "breaks",
        ("P1",),
        f"partition {partition} of {topic.name}",
        found,
        f"a position of {low} to {high}",
        _SKIPPED,
        f"tallyhook sink accept-loss --partition {partition} --to-offset {low}"
        f" --reason ...{other}, then tallyhook backfill --gaps",
    )


def examine_stream(
    reader: Positions, topic: Topic, group: str, positions: Mapping[int, StreamPosition]
) -> Iterator[Finding]:
    """Committed positions of the stream that lie outside of the events topic, or belong to another one."""
    for partition, position in positions.items():
        subject = f"partition {partition} of {topic.name}"
        if position.committed is None:
            if position.low > 0:
                yield Finding(
                    "stream_position",
                    "warning",
                    ("P1",),
                    subject,
                    f"group {group} has no position, and the topic begins at {position.low}",
                    "a position, or a topic that begins at 0",
                    "events below were perhaps never judged",
                    "tallyhook audit, then tallyhook backfill --gaps",
                )
            continue
        try:
            reader.check({partition: position}, topic.topic_id)
        except PositionLost as lost:
            yield Finding(
                "stream_position",
                "breaks",
                ("P1",),
                subject,
                str(lost),
                f"a position of {position.low} to {position.high} in the topic with id {topic.topic_id}",
                "the stream stops, for going on would lose events without a word",
                f"kafka-consumer-groups.sh --group {group} --topic {topic.name}:{partition} --reset-offsets"
                f" --to-offset {position.low} --execute, then tallyhook backfill --gaps",
            )
