"""The check `effects`: outbox and effect topics hold the same, once, up to where the relay says that it has sent."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from confluent_kafka import Message

from schemas.headers import HeaderError, texts
from schemas.topics import TopicNames
from tallyhook.kafka import headers_of
from tallyhook.operations.audit import topic_ranges
from tallyhook.operations.audit.findings import Check
from tallyhook.operations.audit.marks import Marks, effect_topics, patience_seconds
from tallyhook.operations.audit.numbers import Kept
from tallyhook.operations.audit.offset_bits import OffsetBits
from tallyhook.operations.audit.scope import CLOCKS_APART, name_older_rows, newer
from tallyhook.operations.audit.snapshot import Snapshot
from tallyhook.operations.audit.stored_event import parse_json, same_json
from tallyhook.settings import Settings


@dataclass(frozen=True, slots=True)
class SentRecord:
    """A record of an effect topic that says which outbox row it is."""

    topic: str
    effect: str
    partition: int
    offset: int
    key: str
    value: bytes
    headers: dict[str, str]
    seq: int

    @property
    def where(self) -> str:
        """For a person: the record and the effect."""
        return f"{self.topic}[{self.partition}]@{self.offset} ({self.headers.get('ce_id', 'no ce_id')})"


@dataclass
class EffectAudit:
    """Reads every effect topic once, then walks the outbox.

    In memory: a bit for each record of the effect topics.
    """

    settings: Settings
    marks: Marks
    snapshot: Snapshot
    kept: Kept
    check: Check
    _seen: dict[int, OffsetBits] = field(default_factory=dict)
    _first_seq: dict[tuple[str, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        since = self.snapshot.since
        from_when = None if since is None else since - CLOCKS_APART
        self._ranges = {
            topic: newer(self.settings.kafka, topic, held, from_when, self.check)
            for topic, held in self.marks.effects.items()
        }

    @property
    def total(self) -> int:
        """How many records will be read, about."""
        return sum(wanted.length for ranges in self._ranges.values() for wanted in ranges.values())

    def run(self, tell: Callable[[int], None]) -> None:
        """Answers the check."""
        names = TopicNames(self.settings.installation.topic_prefix)
        for topic, effect in effect_topics(names).items():
            for held in self.marks.effects[topic].values():
                self.check.leave_out(f"records and markers of {topic} that retention has cut", held.start)
            for messages in topic_ranges.read(
                self.settings.kafka, topic, self._ranges[topic], patience_seconds=patience_seconds(self.settings)
            ):
                self._take(list(self._readable(topic, effect, messages)))
                tell(len(messages))
        self._walk_outbox({effect: topic for topic, effect in effect_topics(names).items()})

    def _readable(self, topic: str, effect: str, messages: Sequence[Message]) -> Iterator[SentRecord]:
        for message in messages:
            number, offset, key = message.partition() or 0, message.offset() or 0, message.key()
            self.check.looked_at += 1
            try:
                headers = texts(headers_of(message))
            except HeaderError:
                headers = {}
            seq, partition = headers.get("ce_outboxseq", ""), headers.get("ce_outboxpartition", "")
            if not (seq.isascii() and seq.isdigit() and len(seq) <= 18 and partition == str(number)):
                self.check.fail(
                    f"{topic}[{number}]@{offset}: no outbox row of this partition is named in its headers: somebody"
                    " other than the relay wrote it",
                    topic=topic,
                    partition=number,
                    offset=offset,
                    dedupe_key=headers.get("ce_id", ""),
                )
                continue
            text = key.decode(errors="replace") if isinstance(key, bytes) else str(key)
            yield SentRecord(topic, effect, number, offset, text, message.value() or b"", headers, int(seq))

    def _take(self, records: Sequence[SentRecord]) -> None:
        for record in records:
            place = (record.topic, record.partition)
            self._first_seq[place] = min(record.seq, self._first_seq.get(place, record.seq))
            if not self._seen.setdefault(record.partition, OffsetBits()).add(record.seq):
                self._fail(record, f"outbox row {record.seq} was sent before: a consumer gets it twice")
        rows = self.snapshot.look_up(
            "find_rows",
            {"partitions": [record.partition for record in records], "seqs": [record.seq for record in records]},
        )
        for record, row in zip(records, rows, strict=True):
            self._compare(record, row)

    def _compare(self, record: SentRecord, row: tuple[object, ...]) -> None:
        topic, object_id, payload, dedupe_key, causation_id, version = row
        if dedupe_key is None:
            written_at = _moment(record.headers.get("ce_time", ""))
            if record.seq < self.kept.first_seq.get(record.partition, 0) and self.kept.outbox_is_pruned(
                record.partition, written_at
            ):
                self.check.leave_out("records whose outbox row was pruned")
            else:
                self._fail(record, f"outbox row {record.seq} is not there")
            return
        headers = record.headers
        differs = [
            f"{name} is {found} instead of {must}"
            for name, found, must in (
                ("ce_id", headers.get("ce_id"), dedupe_key),
                ("topic", record.effect, topic),
                ("key", record.key, object_id),
                ("ce_subject", headers.get("ce_subject"), object_id),
                ("ce_version", headers.get("ce_version"), str(version)),
                ("ce_causationid", headers.get("ce_causationid"), causation_id),
            )
            if found != must
        ]
        if not _same_payload(record.value, str(payload)):
            differs.append("the payload is another")
        if differs:
            self._fail(record, f"it is not outbox row {record.seq}: {', '.join(differs)}")

    def _walk_outbox(self, topics: dict[str, str]) -> None:
        """Every row that counts as sent must have been met."""
        nothing = OffsetBits()
        since = {"since": self.snapshot.since}
        for partition, seq, effect, dedupe_key, object_id in self.snapshot.walk("sent_rows", since):
            if seq > self.marks.sent.get(partition, -1) or seq in self._seen.get(partition, nothing):
                continue
            topic = topics.get(effect, effect)
            held = self.marks.effects.get(topic, {}).get(partition)
            first = self._first_seq.get((topic, partition))
            # Where older records were left out, those that retention has cut were older still.
            is_cut = held is not None and held.start > 0 and self._ranges[topic][partition].start == held.start
            if is_cut and (first is None or seq < first):
                self.check.leave_out("outbox rows whose record retention has cut")
                continue
            self.check.fail(
                f"outbox partition {partition}, row {seq} ({effect}, {dedupe_key}) of {object_id} counts as sent, and"
                f" {topic} does not have it",
                dedupe_key=dedupe_key,
                object_id=object_id,
                partition=partition,
                seq=seq,
            )
        name_older_rows(self.snapshot, self.check)

    def _fail(self, record: SentRecord, why: str) -> None:
        self.check.fail(
            f"{record.where}: {why}",
            dedupe_key=record.headers.get("ce_id", ""),
            object_id=record.key,
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            seq=record.seq,
        )


def _same_payload(value: bytes, payload: str) -> bool:
    try:
        return same_json(parse_json(value), parse_json(payload))
    except (ValueError, RecursionError):
        return False


def _moment(text: str) -> datetime:
    """The record's `ce_time`; now where there is none, so that nothing is excused."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
