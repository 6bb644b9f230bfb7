"""The checks `events` and `deliveries`: from topic to topic and from topic to table, no delivery is lost."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from confluent_kafka import Message

from schemas.headers import HeaderError, texts
from schemas.topics import TopicNames
from tallyhook.kafka import headers_of
from tallyhook.operations.audit import topic_ranges
from tallyhook.operations.audit.findings import Check
from tallyhook.operations.audit.given_up import name_losses
from tallyhook.operations.audit.marks import Marks, patience_seconds
from tallyhook.operations.audit.numbers import Kept
from tallyhook.operations.audit.offset_bits import OffsetBits
from tallyhook.operations.audit.scope import CLOCKS_APART, newer
from tallyhook.operations.audit.snapshot import SinkPosition, Snapshot
from tallyhook.operations.audit.topic_ranges import Range, watermarks
from tallyhook.settings import Settings

Tell = Callable[[int], None]
"""Told how many more records were read."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A record of `state-changes`, and which delivery of `events` it says that it is.

    Args:
        event_id: empty where the headers cannot be read; the sink then goes by the record's own place.
        source: partition and offset in `events`.
    """

    message: Message
    event_id: str
    source: tuple[int, int] | None

    @property
    def place(self) -> tuple[int, int]:
        """Partition and offset in `state-changes`."""
        return self.message.partition() or 0, self.message.offset() or 0


@dataclass
class DeliveryAudit:
    """Reads `state-changes` and `dead-letters` once and answers both checks.

    In memory: a bit for each event between the low watermark of `events` and the stream's commit.
    """

    settings: Settings
    marks: Marks
    snapshot: Snapshot
    events: Check
    deliveries: Check
    kept: Kept
    judged: dict[int, OffsetBits] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names = TopicNames(self.settings.installation.topic_prefix)
        self._patience_seconds = patience_seconds(self.settings)
        partitions = range(self.settings.installation.partitions)
        self.judged = {number: OffsetBits() for number in partitions}
        self._oldest_change: dict[int, int] = {}
        self._changes = self._ranges(self._names.state_changes, self.marks.state_changes, self.snapshot.applied)
        self._dead = self._ranges(self._names.dead_letters, self.marks.dead_letters, self.snapshot.copied)
        self._events = newer(
            self.settings.kafka, self._names.events, self.marks.events, self.snapshot.since, self.events
        )

    @property
    def total(self) -> int:
        """How many records will be read, about."""
        return sum(wanted.length for found in (self._changes, self._dead) for wanted in found.values())

    def run(self, tell: Tell) -> None:
        """Reads both topics, then compares."""
        name_losses(self.snapshot, self.deliveries)
        kafka = self.settings.kafka
        for messages in topic_ranges.read(
            kafka, self._names.state_changes, self._changes, patience_seconds=self._patience_seconds
        ):
            self._take_changes([_delivery(message) for message in messages])
            tell(len(messages))
        for messages in topic_ranges.read(
            kafka, self._names.dead_letters, self._dead, patience_seconds=self._patience_seconds
        ):
            self._take_dead(messages)
            tell(len(messages))
        for number, committed in sorted(self.marks.committed.items()):
            self._compare_events(number, committed)

    def _ranges(
        self, topic: str, noted: Mapping[int, Range], positions: Mapping[int, SinkPosition]
    ) -> dict[int, Range]:
        """What to read: up to the noted ends, and up to where the sink was if that is further."""
        ends = watermarks(self.settings.kafka, topic, sorted(noted))
        ranges = {}
        for number, held in noted.items():
            position, end = positions.get(number), ends[number].end
            upto = held.end
            if position is not None:
                self._check_position(topic, number, position.next_offset, Range(held.start, end))
                upto = max(upto, min(position.next_offset, end))
            self.deliveries.leave_out(f"records of {topic} that retention has cut", held.start)
            ranges[number] = Range(held.start, upto)
        since = self.snapshot.since
        return newer(
            self.settings.kafka, topic, ranges, None if since is None else since - CLOCKS_APART, self.deliveries
        )

    def _check_position(self, topic: str, number: int, next_offset: int, held: Range) -> None:
        where: dict[str, str | int] = {"topic": topic, "partition": number, "offset": next_offset}
        if next_offset > held.end:
            self.deliveries.fail(
                f"{topic} partition {number} ends at {held.end}, but the sink has applied it up to {next_offset}: the"
                " broker lost records, or sink_offsets was raised",
                **where,
            )
        elif next_offset < held.start:
            self.deliveries.fail(
                f"{topic} partition {number} begins at {held.start}, but the sink has applied it up to {next_offset}"
                f" only: records {next_offset} to {held.start - 1} were cut before they were applied. Restore them, or"
                " give them up with `tallyhook sink accept-loss`",
                **where,
            )

    def _take_changes(self, found: Sequence[Delivery]) -> None:
        for delivery in found:
            if delivery.source is not None and delivery.source[0] in self.judged:
                number, offset = delivery.source
                self.judged[number].add(offset)
                self._oldest_change[number] = min(offset, self._oldest_change.get(number, offset))
        passed = [one for one in found if _is_passed(one.place, self.snapshot.applied)]
        if passed:
            sources = [one.source or (-1, -1) for one in passed]
            rows = self.snapshot.look_up(
                "find_deliveries",
                {
                    "ids": [one.event_id for one in passed],
                    "partitions": [partition for partition, _ in sources],
                    "offsets": [offset for _, offset in sources],
                    "own_partitions": [one.place[0] for one in passed],
                    "own_offsets": [one.place[1] for one in passed],
                    "events": self._names.events,
                    "state_changes": self._names.state_changes,
                },
            )
            for delivery, row in zip(passed, rows, strict=True):
                self._compare_delivery(delivery, row)
        self.deliveries.looked_at += len(passed)

    def _compare_delivery(self, delivery: Delivery, row: tuple[object, ...]) -> None:
        partition, offset, digest, noted_again, set_aside = row
        number, position = delivery.place
        ids: dict[str, str | int] = {"event_id": delivery.event_id, "partition": number, "offset": position}
        where = f"event {delivery.event_id or '(no readable id)'}, {self._names.state_changes}[{number}]@{position}"
        if delivery.source is not None and (partition, offset) == delivery.source:
            if digest != hashlib.sha256(delivery.message.value() or b"").digest():
                self.deliveries.fail(f"{where}: the inbox holds other bytes than were delivered", **ids)
        elif not noted_again and not set_aside:
            if delivery.source is not None and self.kept.inbox_is_pruned(delivery.source[0]) and self._is_old(delivery):
                self.deliveries.leave_out("deliveries that are so old that their inbox row may have been pruned")
                return
            if partition is None:
                text = "the sink has passed it, and it is neither in the inbox nor in redeliveries nor quarantined"
            else:
                text = (
                    f"the inbox has the event from another delivery ({partition}@{offset}), and this one is not noted"
                    " in redeliveries"
                )
            self.deliveries.fail(f"{where}: {text}", **ids)

    def _is_old(self, delivery: Delivery) -> bool:
        try:
            received_at = datetime.fromisoformat(_texts(delivery.message).get("ce_receivedat", ""))
        except ValueError:
            return False
        return received_at.tzinfo is not None and received_at < self.kept.inbox_since

    def _take_dead(self, messages: Sequence[Message]) -> None:
        passed = []
        for message in messages:
            place = (message.partition() or 0, message.offset() or 0)
            found = _texts(message)
            source = _source(found)
            if found.get("ce_stage") == "streams" and source is not None and source[0] in self.judged:
                self.judged[source[0]].add(source[1])
            if _is_passed(place, self.snapshot.copied):
                passed.append((place, found.get("ce_id", "")))
        if not passed:
            return
        self.deliveries.looked_at += len(passed)
        rows = self.snapshot.look_up(
            "find_dead",
            {
                "topic": self._names.dead_letters,
                "partitions": [place[0] for place, _ in passed],
                "offsets": [place[1] for place, _ in passed],
            },
        )
        for (place, event_id), (is_there,) in zip(passed, rows, strict=True):
            if not is_there:
                self.deliveries.fail(
                    f"event {event_id or '(no readable id)'}, {self._names.dead_letters}[{place[0]}]@{place[1]}: the"
                    " sink has passed it, and it is not in quarantined_events",
                    event_id=event_id,
                    partition=place[0],
                    offset=place[1],
                )

    def _compare_events(self, number: int, committed: int) -> None:
        held, judged, topic = self.marks.events[number], self.judged[number], self._names.events
        where: dict[str, str | int] = {"partition": number, "offset": committed}
        if committed > held.end:
            self.events.fail(
                f"{topic} partition {number} ends at {held.end}, but the stream has committed {committed}: the broker"
                " lost records",
                **where,
            )
        if committed < held.start:
            self.events.fail(
                f"{topic} partition {number} begins at {held.start}, but the stream has committed {committed} only:"
                f" events {committed} to {held.start - 1} were cut before they were judged",
                **where,
            )
        start, end = self._events[number].start, min(committed, held.end)
        self.events.leave_out(f"events of {topic} that retention has cut", held.start)
        # A state change is younger than its event, but its segment may be cut first, with those before it. Where older
        # ones were left out, those that retention has cut were older still.
        if self._changes[number].start == self.marks.state_changes[number].start > 0:
            oldest = min(end, max(start, self._oldest_change.get(number, end)))
            self.events.leave_out(f"events of {topic} whose state changes retention has cut", oldest - start)
            start = oldest
        self.events.looked_at += max(0, end - start)
        first = next(judged.missing(start, end), None)
        if first is not None:
            self._name_missing(number, Range(first, end))

    def _name_missing(self, number: int, wanted: Range) -> None:
        """Not every offset has a record, so the events themselves are read; it hardly ever comes to that."""
        topic = self._names.events
        for messages in topic_ranges.read(
            self.settings.kafka, topic, {number: wanted}, patience_seconds=self._patience_seconds
        ):
            for message in messages:
                offset = message.offset() or 0
                if offset not in self.judged[number]:
                    event_id = _texts(message).get("ce_id", "")
                    self.events.fail(
                        f"event {event_id or '(no readable id)'}, {topic}[{number}]@{offset}: the stream has committed"
                        " it, and it is neither in state-changes nor in dead-letters",
                        event_id=event_id,
                        partition=number,
                        offset=offset,
                    )


def _is_passed(place: tuple[int, int], positions: Mapping[int, SinkPosition]) -> bool:
    position = positions.get(place[0])
    return position is not None and place[1] < position.next_offset


def _delivery(message: Message) -> Delivery:
    found = _texts(message)
    event_id = found.get("ce_id", "")
    # PostgreSQL keeps no NUL, so no row can have such an id: the sink goes by the record's own place.
    return Delivery(message, "" if "\0" in event_id else event_id, _source(found))


def _texts(message: Message) -> dict[str, str]:
    try:
        return texts(headers_of(message))
    except HeaderError:
        return {}


def _source(found: Mapping[str, str]) -> tuple[int, int] | None:
    partition, offset = found.get("ce_sourcepartition", ""), found.get("ce_sourceoffset", "")
    if all(text.isascii() and text.isdigit() and len(text) <= 18 for text in (partition, offset)):
        return int(partition), int(offset)
    return None
