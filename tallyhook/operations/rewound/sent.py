"""What the effect topics hold of one partition of the outbox, read from their ends backwards."""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from schemas.effects import BALANCE_ENTRY, EFFECTS
from schemas.headers import texts
from schemas.topics import TopicNames
from tallyhook import kafka
from tallyhook.errors import KafkaUnavailable, TallyhookError
from tallyhook.settings import KafkaSettings

AFTER = "balance_after_minor"
"""The member of a balance entry that follows from what other deposits of the user did before it."""

BATCH_RECORDS = 1000

Bounds = Mapping[int, tuple[int, int]]
"""The first offset and the end of a topic by partition."""


class NotOurs(TallyhookError):
    """An effect topic holds what no relay wrote, or the same row twice; nothing was changed."""


@dataclass(frozen=True, slots=True)
class SentEffect:
    """One outbox row as it was sent.

    Args:
        seq: its number within the partition.
        effect: the row's `topic` column.
        object_id: the record's key.
        causation_id: the event that gave it.
        version: the object's version, as text.
        written_at: when the row was written, to the microsecond: a row that was made again has another moment.
        content: digest of the payload, `balance_after_minor` aside.
        payload: of a balance entry, as it was sent; else None.
        where: topic, partition and offset, for a person.
    """

    seq: int
    effect: str
    dedupe_key: str
    object_id: str
    causation_id: str
    version: str
    written_at: datetime
    content: bytes
    payload: str | None
    where: str


def effect_topics(names: TopicNames) -> dict[str, str]:
    """Every topic that takes outbox rows, with the rows' `topic` column."""
    return {names.effect(effect): effect for effect in EFFECTS} | {names.balance_entries: BALANCE_ENTRY}


def digest(effect: str, payload: str | bytes) -> bytes:
    """Of a payload as PostgreSQL writes jsonb, blanks and a balance entry's `balance_after_minor` aside."""
    text = payload.encode() if isinstance(payload, str) else payload
    if effect == BALANCE_ENTRY:
        members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        members.pop(AFTER, None)
        text = msgspec.json.encode(members, order="sorted")
    return hashlib.blake2b(msgspec.json.format(text, indent=-1), digest_size=16).digest()


def bounds(
    settings: KafkaSettings, topics: Mapping[str, str], partitions: Sequence[int], timeout_seconds: float
) -> dict[str, Bounds]:
    """What each topic holds now, open transactions included; raises KafkaUnavailable."""
    return {topic: kafka.watermarks(settings, topic, partitions, timeout_seconds) for topic in topics}


def read_tail(
    settings: KafkaSettings,
    topics: Mapping[str, str],
    held: Mapping[str, Bounds],
    partition: int,
    records: int,
    timeout_seconds: float,
) -> tuple[dict[int, SentEffect], bool]:
    """What the last `records` offsets of each topic hold, by outbox number, and whether that is all there is.

    Open transactions are waited for: what they hide may be committed yet.

    Args:
        topics: the effect by topic.
        held: what they hold; nothing behind it is read.

    Raises:
        KafkaUnavailable: an end was not reached in time.
        NotOurs: a record names no row of this partition, or one that another record names.
    """
    deadline = time.monotonic() + timeout_seconds
    ends, starts, whole = {}, [], True
    for topic in topics:
        low, high = held[topic][partition]
        start = max(low, high - records)
        whole = whole and start == low
        if high > start:
            ends[topic] = high
            starts.append(TopicPartition(topic, partition, start))
    found: dict[int, SentEffect] = {}
    for message in _messages(settings, starts, ends, deadline):
        effect = _read(message, topics[message.topic() or ""], partition)
        if effect.seq in found:
            raise NotOurs(
                f"outbox partition {partition}, row {effect.seq} was sent twice: {found[effect.seq].where} and"
                f" {effect.where}. Nothing was changed; `tallyhook audit` looks for more"
            )
        found[effect.seq] = effect
    return found, whole


def _messages(
    settings: KafkaSettings, starts: list[TopicPartition], ends: dict[str, int], deadline: float
) -> Iterator[Message]:
    if not starts:
        return
    reader = kafka.plain_reader(settings)
    try:
        reader.assign(starts)
        while ends:
            for message in reader.consume(BATCH_RECORDS, 0.1):
                error, topic, offset = message.error(), message.topic() or "", message.offset() or 0
                if error is None:
                    # What was sent after the look at the ends is not asked for.
                    if offset < ends.get(topic, 0):
                        yield message
                    else:
                        ends.pop(topic, None)
                elif error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001  the code has no public name
                    raise KafkaUnavailable(f"reading {topic}: {kafka.words(error)}")
                elif offset >= ends.get(topic, 0):
                    ends.pop(topic, None)
            if ends and time.monotonic() > deadline:
                raise KafkaUnavailable(
                    f"the end of {', '.join(sorted(ends))} was not reached in time: a transaction may still be open"
                    " there; the broker ends it by itself after its time-out. Try again"
                )
    except KafkaException as failure:
        raise KafkaUnavailable(f"reading the effect topics: {kafka.words(failure.args[0])}") from failure
    finally:
        reader.close()


def _read(message: Message, effect: str, partition: int) -> SentEffect:
    where = f"{message.topic()}[{message.partition()}]@{message.offset()}"
    try:
        headers = texts(kafka.headers_of(message))
        key, value = message.key(), message.value()
        if headers["ce_outboxpartition"] != str(partition) or not isinstance(key, bytes) or value is None:
            raise ValueError("no row of this partition")
        return SentEffect(
            seq=int(headers["ce_outboxseq"]),
            effect=effect,
            dedupe_key=headers["ce_id"],
            object_id=key.decode(),
            causation_id=headers["ce_causationid"],
            version=headers["ce_version"],
            written_at=datetime.fromisoformat(headers["ce_time"]),
            content=digest(effect, value),
            payload=value.decode() if effect == BALANCE_ENTRY else None,
            where=where,
        )
    except (KeyError, ValueError, TypeError, msgspec.MsgspecError) as failure:
        raise NotOurs(
            f"{where} is no record of the relay ({failure}): only relays may write to effect topics. Nothing was"
            " changed; take the right to write from whoever else has it"
        ) from failure
