"""Redrive: what was set aside goes to `events` once more, and the sink alone decides what comes of it.

Doing it twice, or dying in the middle, does nothing more than doing it once: each delivery goes through inbox and
version guard, and a row is closed in the transaction that applies its event.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from schemas.topics import TopicNames
from tallyhook import kafka
from tallyhook.clock import Clock
from tallyhook.errors import KafkaUnavailable, TopicMismatch
from tallyhook.operations.quarantine import Quarantine, QuarantinedEvent, Stored, Wanted
from tallyhook.operations.repair import Redriven, Repair, Unusable
from tallyhook.postgres import Connection, Queries
from tallyhook.settings import Settings

PAGE_ROWS = (25, 500)
"""Fewest and most rows under way at a time: so few that a crash leaves few attempts counted that were not made."""
PAGE_SECONDS = 0.25
"""A page is what the rate allows in so long, within these bounds: progress is shown as it comes."""
CHUNK_BYTES = 4 << 20
"""Most bytes of bodies in memory, one body at least."""
DELIVERY_TIMEOUT_SECONDS = 30.0
STOP_SECONDS = 5.0
"""So long a stop waits for the reports of what is under way."""
_OVERHEAD_BYTES = 65_536
_POLL_SECONDS = 0.1

Fate = Literal[
    "would be sent", "sent", "unusable", "in the inbox", "closed meanwhile", "not confirmed", "redriven", "discarded"
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one row.

    Args:
        fate: `sent` means that Kafka has it; what the sink decides is seen in the row's state. `redriven` and
            `discarded` rows were named and are closed already.
        why: empty unless it was not sent.
    """

    event: QuarantinedEvent
    fate: Fate
    why: str = ""

    @property
    def done(self) -> bool:
        """Whether nothing is left to be done for this row by hand."""
        return self.fate in ("would be sent", "sent", "closed meanwhile", "redriven")


class Redrive:
    """One run of redrive.

    Args:
        connection: autocommit, used by nobody else meanwhile.
        wanted: which rows; those that are set aside after the run began do not belong to it.
        rate_per_second: most records a second.
        stopping: once set, what is under way is waited for and nothing more is sent.

    Raises:
        UnknownRows: a row that was named does not exist; nothing was sent.
    """

    def __init__(
        self,
        connection: Connection,
        settings: Settings,
        wanted: Wanted,
        *,
        rate_per_second: float,
        clock: Clock,
        stopping: threading.Event,
    ) -> None:
        schema = settings.installation.schema_name
        self._connection, self._settings, self._clock, self._stopping = connection, settings, clock, stopping
        self._quarantine = Quarantine(connection, schema)
        self._queries = Queries("tallyhook.operations", "redrive.sql", schema)
        self._repair = Repair(settings)
        self._events = TopicNames(settings.installation.topic_prefix).events
        self._pause_seconds = 1.0 / rate_per_second
        fewest, most = PAGE_ROWS
        self._page_rows = max(fewest, min(most, int(rate_per_second * PAGE_SECONDS)))
        self._due_seconds = 0.0
        self._named = self._quarantine.named(wanted.ids)
        self.total, newest = self._quarantine.measure(wanted)
        self._wanted = replace(wanted, upto=min(newest, wanted.upto))
        self._timed_out = False

    def closed(self) -> list[Outcome]:
        """Rows that were named and are in no state to be sent."""
        return [
            Outcome(event, event.state, f"closed already ({event.note})")
            for event in self._named
            if event.state != "open" and event.state not in (self._wanted.states or ())
        ]

    def look(self, limit: int) -> Iterator[Outcome]:
        """What would become of each row; changes nothing and does not ask Kafka."""
        for chunk in self._chunks(limit):
            for row, made in self._judge(chunk):
                yield made if isinstance(made, Outcome) else Outcome(row.event, "would be sent")

    def run(self, limit: int) -> Iterator[Outcome]:
        """Sends the rows, oldest first, at most `limit`; each outcome is told once it is known.

        Raises:
            TopicMismatch: before anything was sent.
            KafkaUnavailable: Kafka does not answer, or stopped to; what was told as sent is sent.
        """
        client = self._open()
        for chunk in self._chunks(limit):
            yield from self._send(client, self._judge(chunk))

    def _chunks(self, limit: int) -> Iterator[list[Stored]]:
        """The rows with their bytes, so few at a time that these stay within bounds."""
        wanted, left = self._wanted, limit
        while left > 0:
            page = self._quarantine.find(wanted, min(self._page_rows, left))
            if not page:
                return
            left -= len(page)
            wanted = replace(wanted, after=page[-1].id)
            for part in _parts(page):
                if self._stopping.is_set():
                    return
                yield self._quarantine.load(part)

    def _judge(self, rows: Sequence[Stored]) -> list[tuple[Stored, Redriven | Outcome]]:
        made = [(row, self._repair.record(row)) for row in rows]
        ids = [record.event_id for _, record in made if isinstance(record, Redriven)]
        found = self._connection.execute(self._queries["in_inbox"], (ids,)).fetchall() if ids else []
        inbox = {event_id: (object_id, version) for event_id, object_id, version in found}
        return self._without_closed([(row, _judged(row.event, record, inbox)) for row, record in made])

    def _without_closed(
        self, judged: list[tuple[Stored, Redriven | Outcome]]
    ) -> list[tuple[Stored, Redriven | Outcome]]:
        """The sink closes a row as it writes the inbox: what was open when read and is closed now was applied."""
        suspects = [row.event.id for row, made in judged if isinstance(made, Outcome) and made.fate == "in the inbox"]
        if not suspects:
            return judged
        parameters = {"ids": suspects, "states": list(self._wanted.states or ())}
        waiting = {row[0] for row in self._connection.execute(self._queries["still_waiting"], parameters).fetchall()}
        closed = set(suspects) - waiting
        why = "its event was applied a moment ago"
        return [
            (row, Outcome(row.event, "closed meanwhile", why) if row.event.id in closed else made)
            for row, made in judged
        ]

    def _send(self, client: Producer, judged: Sequence[tuple[Stored, Redriven | Outcome]]) -> Iterator[Outcome]:
        records = {row.event.id: made for row, made in judged if isinstance(made, Redriven)}
        begun = self._begin(records)
        failures: dict[int, str] = {}
        for row_id in begun:
            self._wait_for_turn(client)
            if self._stopping.is_set():
                break
            self._produce(client, row_id, records[row_id], failures)
        self._await_reports(client)
        for row, made in judged:
            if isinstance(made, Outcome):
                yield made
            elif row.event.id not in begun:
                yield Outcome(row.event, "closed meanwhile", "somebody closed it a moment ago")
            elif row.event.id in failures:
                failure = failures[row.event.id]
                yield Outcome(row.event, "not confirmed" if failure else "sent", failure)
        if self._timed_out and failures and all(failures.values()):
            raise KafkaUnavailable(
                f"Kafka confirmed none of the last {len(failures)} records: run it again once the broker answers;"
                " rows that were sent already do no harm"
            )

    def _begin(self, records: dict[int, Redriven]) -> list[int]:
        """Counts the attempt; gives the rows that are still to be sent, in order."""
        if not records:
            return []
        parameters: dict[str, Any] = {
            "ids": list(records),
            "event_ids": [record.event_id for record in records.values()],
            "object_ids": [record.object_id for record in records.values()],
            "states": list(self._wanted.states or ()),
        }
        return sorted(row[0] for row in self._connection.execute(self._queries["begin_attempt"], parameters).fetchall())

    def _produce(self, client: Producer, row_id: int, record: Redriven, failures: dict[int, str]) -> None:
        failures[row_id] = f"no confirmation within {DELIVERY_TIMEOUT_SECONDS:g} s"

        def reported(error: KafkaError | None, message: Message) -> None:
            failures[row_id] = kafka.unconfirmed(error, message) or ""
            if error is not None and error.code() == KafkaError._MSG_TIMED_OUT:  # noqa: SLF001  it has no public name
                self._timed_out = True

        deadline = self._clock.monotonic_seconds() + DELIVERY_TIMEOUT_SECONDS
        while True:
            try:
                client.produce(self._events, record.value, record.key, headers=record.headers, on_delivery=reported)
            except BufferError:
                if self._clock.monotonic_seconds() > deadline:
                    return
                client.poll(_POLL_SECONDS)
            except KafkaException as failure:
                failures[row_id] = kafka.words(failure.args[0])
                return
            else:
                return

    def _wait_for_turn(self, client: Producer) -> None:
        now = self._clock.monotonic_seconds()
        self._due_seconds = max(self._due_seconds, now)
        while (left := self._due_seconds - now) > 0 and not self._stopping.is_set():
            client.poll(min(left, _POLL_SECONDS))
            now = self._clock.monotonic_seconds()
        self._due_seconds += self._pause_seconds

    def _await_reports(self, client: Producer) -> None:
        began = self._clock.monotonic_seconds()
        while client.flush(_POLL_SECONDS):
            patience_seconds = STOP_SECONDS if self._stopping.is_set() else DELIVERY_TIMEOUT_SECONDS + 1
            if self._clock.monotonic_seconds() - began > patience_seconds:
                self._timed_out = True
                return

    def _open(self) -> Producer:
        """A producer, once the topic is there and has the partitions that keys were placed by."""
        limit_bytes = self._settings.ingress.max_body_bytes + _OVERHEAD_BYTES
        client = kafka.producer(
            self._settings.kafka,
            linger_ms=5,
            delivery_timeout_seconds=DELIVERY_TIMEOUT_SECONDS,
            on_fatal=lambda _: None,  # Each record's report says it too.
            extra={"message.max.bytes": max(1_000_000, limit_bytes)},
        )
        timeout_seconds = self._settings.kafka.request_timeout_seconds
        try:
            found = client.list_topics(self._events, timeout=timeout_seconds).topics[self._events]
        except KafkaException as failure:
            raise KafkaUnavailable(f"Kafka does not answer: {kafka.words(failure.args[0])}") from failure
        if found.error is not None:
            raise TopicMismatch(f"topic {self._events}: {kafka.words(found.error)}; see `tallyhook topics show`")
        partitions = self._settings.installation.partitions
        if len(found.partitions) != partitions:
            raise TopicMismatch(
                f"topic {self._events} has {len(found.partitions)} partitions, TALLYHOOK_PARTITIONS says {partitions}:"
                " a key would go to another partition than before"
            )
        return client


def _judged(
    event: QuarantinedEvent, record: Redriven | Unusable, inbox: dict[str, tuple[str, int | None]]
) -> Redriven | Outcome:
    if isinstance(record, Unusable):
        return Outcome(event, "unusable", record.why)
    known = inbox.get(record.event_id)
    if known is None:
        return record
    if known == (record.object_id, record.version):
        why = "another delivery of this event was taken; close this row with `tallyhook quarantine resolve --accept`"
    else:
        why = f"its id was taken by an event of {known[0]}, so it would be set aside again; ask the gateway"
    return Outcome(event, "in the inbox", why)


def _parts(page: Sequence[QuarantinedEvent]) -> Iterator[list[QuarantinedEvent]]:
    part: list[QuarantinedEvent] = []
    held_bytes = 0
    for event in page:
        if part and held_bytes + event.body_bytes > CHUNK_BYTES:
            yield part
            part, held_bytes = [], 0
        part.append(event)
        held_bytes += event.body_bytes
    yield part
