"""The truth about what was sent: the newest committed record of each partition of the progress topic."""

import time
from collections.abc import Mapping, Sequence
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from sinks.relay.position import Position, decode
from tallyhook import kafka
from tallyhook.errors import KafkaUnavailable, OutboxRewound, PositionLost
from tallyhook.settings import KafkaSettings

TAIL_RECORDS = 2_000
"""How far before the end the search begins; where nothing committed is found, it widens eightfold."""


def read(
    settings: KafkaSettings, topic: str, partitions: Sequence[int], *, timeout_seconds: float
) -> dict[int, Position]:
    """The last row sent, by partition; absent where nothing was ever sent.

    Call it after init_transactions, which ends the transaction of an older relay. It reads up to the high watermark
    and not to the first end-of-partition, because an open transaction hides what lies behind it; only this shard's
    partitions, because another shard may be in the middle of one; and from the tail, because compaction leaves the
    newest segment as it is. Raises KafkaUnavailable, or PositionLost for a record that no relay wrote.
    """
    deadline = time.monotonic() + timeout_seconds
    bounds = kafka.watermarks(settings, topic, partitions, timeout_seconds)
    unread = {number: (low, high) for number, (low, high) in bounds.items() if high > low}
    found: dict[int, Position] = {}
    tail = TAIL_RECORDS
    while unread:
        starts = {number: max(low, high - tail) for number, (low, high) in unread.items()}
        found |= _newest(settings, topic, starts, {number: high for number, (_, high) in unread.items()}, deadline)
        unread = {n: (low, high) for n, (low, high) in unread.items() if n not in found and starts[n] > low}
        tail *= 8
    return found


def _newest(
    settings: KafkaSettings, topic: str, starts: Mapping[int, int], ends: Mapping[int, int], deadline: float
) -> dict[int, Position]:
    """The last committed record of each partition from `starts` up to `ends`."""
    found: dict[int, Position] = {}
    missing = set(ends)
    reader = kafka.plain_reader(settings)
    try:
        reader.assign([TopicPartition(topic, number, offset) for number, offset in starts.items()])
        while missing:
            for message in reader.consume(1000, 0.1):
                error = message.error()
                number, offset = message.partition() or 0, message.offset() or 0
                if error is None:
                    found[number] = decode(message.value(), topic, number, offset)
                elif error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001  the code has no public name
                    raise KafkaUnavailable(f"reading {topic}: {kafka.words(error)}")
                elif offset >= ends[number]:
                    missing.discard(number)
            if missing and time.monotonic() > deadline:
                raise KafkaUnavailable(
                    f"the end of {topic} was not reached in time: a transaction is still open on partitions"
                    f" {sorted(missing)}; the broker ends it by itself after its time-out"
                )
    except KafkaException as failure:
        raise KafkaUnavailable(f"reading {topic}: {kafka.words(failure.args[0])}") from failure
    finally:
        reader.close()
    return found


def check(topic: str, progress: Mapping[int, Position], cursors: Mapping[int, int], ids: Mapping[int, UUID]) -> None:
    """Holds the progress against the database, which may each have lost something.

    Args:
        progress: the last row sent, by partition, as Kafka has it.
        cursors: the seq that the database remembers as sent, -1 for nothing.
        ids: the ids of the rows that the progress names, where they are there.

    Raises:
        PositionLost: Kafka remembers less than was sent: starting from there would send rows twice.
        OutboxRewound: the database lost rows that were sent.
    """
    for partition, cursor in sorted(cursors.items()):
        known = progress.get(partition)
        if cursor > (known.seq if known else -1):
            raise PositionLost(
                f"{topic}, partition {partition} {f'ends at row {known.seq}' if known else 'is empty'}, but rows up to"
                f" {cursor} were sent: the topic lost records, and going on would send rows twice. Restore the topic,"
                f' or write {{"seq":{cursor},"id":"<id of that row of pg_outbox>"}} with key {partition} to this'
                " partition once you know that the effects up to there are in their topics; then restart the relay"
            )
    for partition, position in sorted(progress.items()):
        if ids.get(partition) != position.id:
            raise OutboxRewound(rewound(partition, position))


def rewound(partition: int, position: Position) -> str:
    """What happened and the way out."""
    return (
        f"outbox rewound: partition {partition} no longer holds row {position.seq} with id {position.id}, which was"
        " sent: the database lost commits (a failover to a replica that was behind, or a restored backup), and new"
        " effects would take the numbers of sent ones. Restore a copy that has this row; or let the sink make the lost"
        " rows again, then see with `tallyhook relay recover` whether they are those that were sent. The relay looks"
        " every few seconds and goes on by itself"
    )
