"""One loop for each topic that is applied under the fence: join, claim, read, apply, and start over after any trouble.

There is one way back from every failure: pause, wait, connect anew, claim anew, and read on from the stored positions.
What was read and not applied is dropped and read again, so that nothing depends on what was known before the failure.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import psycopg
from confluent_kafka import Message

from sinks import migrations, takeover
from sinks.errors import CountDiffers, LedgerBroken, NumbersTaken, TooManyQuarantined
from sinks.fence import Fence, TopicRange
from sinks.first_records import FirstRecords
from sinks.installed import check_topic
from sinks.membership import Membership
from sinks.status import STOPPED, Status
from sinks.unapplied import Unapplied
from tallyhook import kafka, logs
from tallyhook.clock import Clock
from tallyhook.errors import (
    DatabaseUnavailable,
    FenceLost,
    KafkaUnavailable,
    PositionLost,
    SchemaMismatch,
    TallyhookError,
    TopicMismatch,
)
from tallyhook.postgres import Connection, connect, words
from tallyhook.settings import Settings

RETRY_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0)
MEND_SECONDS = 2.0
"""How often it is looked whether somebody mended what only a person can mend."""
IDLE_SECONDS = 0.1
JOIN_SECONDS = 0.005
"""A batch is closed when no record comes for so long."""
MEASURE_SECONDS = 5.0
STALL_SECONDS = 30.0

_OURS = (psycopg.Error, DatabaseUnavailable, CountDiffers, LedgerBroken, NumbersTaken)
_MENDED_BY_PEOPLE = (TopicMismatch, PositionLost, SchemaMismatch)

_log = logs.logger(__name__)


class Work(Protocol):
    """What is done with the records of one topic."""

    @property
    def fence(self) -> Fence:
        """The positions that are owned."""

    def claim(self, partitions: Sequence[int], held: dict[int, TopicRange]) -> None:
        """Makes this process the owner of the partitions."""

    def apply(self, messages: Sequence[Message]) -> None:
        """Applies records of claimed partitions, in order."""

    def between(self) -> None:
        """What is to be done now and then; called after each turn."""


class Loop:
    """Runs the work on one topic until `stop` is set; to be run on one thread.

    Args:
        name: shown in logs and on the health pages.
        topic: what is read.
        group_id: the consumer group.
        make_work: makes the work on a new connection; the second argument is the topic's id.
        batch_rows: most records a batch.
        on_fence_lost: called when another worker owned a partition.
        on_lag: takes the number of records that wait by partition, every few seconds, whatever else fails.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        topic: str,
        group_id: str,
        make_work: Callable[[Connection, str], Work],
        status: Status,
        stop: threading.Event,
        clock: Clock,
        *,
        batch_rows: int,
        on_fence_lost: Callable[[], None],
        on_lag: Callable[[dict[int, int]], None],
    ) -> None:
        self._name, self._settings, self._topic, self._group_id = name, settings, topic, group_id
        self._make_work, self._batch_rows = make_work, batch_rows
        self._on_fence_lost, self._on_lag = on_fence_lost, on_lag
        self._status, self._stop, self._clock = status, stop, clock
        self._connection: Connection | None = None
        self._work: Work | None = None
        self._member: Membership | None = None
        self._failures = 0
        self._positions: dict[int, int] = {}
        self._unapplied = Unapplied()
        self._first = FirstRecords(settings.kafka, topic)
        self._measured_at = self._taken_at = clock.monotonic_seconds()
        status.trouble(name, "start", "starting")

    def run(self) -> None:
        """Turns until it is told to stop; then leaves the group."""
        try:
            while not self._stop.is_set():
                self._status.beat(self._name)
                try:
                    self._turn()
                except FenceLost as failure:
                    self._lose_fence("fence lost", reason=str(failure))
                except TooManyQuarantined as failure:
                    self._halt(failure)
                except KafkaUnavailable as failure:
                    self._start_over("kafka", failure, self._next_wait())
                except _OURS as failure:
                    self._start_over("database", failure, self._next_wait())
                except _MENDED_BY_PEOPLE as failure:
                    self._start_over(STOPPED, failure, MEND_SECONDS)
        finally:
            self._leave()
            self._disconnect()

    def _turn(self) -> None:
        work = self._work or self._connect()
        member = self._member
        if member is None:
            kafka_settings, fetch_min_bytes = self._settings.kafka, self._settings.profile.fetch_min_bytes
            member = Membership(kafka_settings, self._topic, self._group_id, fetch_min_bytes=fetch_min_bytes)
            self._member = member
        if member.revoked:
            work.fence.release(sorted(member.revoked))
            self._unapplied.forget(member.revoked)
            member.revoked.clear()
        if member.unclaimed:
            self._claim(work, member)
        messages = self._gather(member)
        with self._status.asking_database(self._name):
            if messages:
                self._unapplied.take(messages)
                work.apply(messages)
            work.between()
            work.fence.look_back(self._clock.monotonic_seconds())
        self._note_positions(work)
        lags = self._measure(member)
        if any(lags.values()) and self._clock.monotonic_seconds() - self._taken_at > STALL_SECONDS:
            raise KafkaUnavailable(f"{self._topic}: records wait and none came for {STALL_SECONDS:g} s; reading anew")
        if member.settled and not self._unapplied:
            # A turn that found nothing to do says nothing about a batch that failed before and was not read again yet.
            self._well()

    def _connect(self) -> Work:
        with self._status.asking_database(self._name):
            connection = connect(self._settings.database, "sink")
            self._connection = connection
            migrations.check(connection, self._settings.installation)
            topic_id = check_topic(self._settings, connection, self._topic)
            self._work = self._make_work(connection, topic_id)
        return self._work

    def _claim(self, work: Work, member: Membership) -> None:
        partitions = sorted(member.unclaimed)
        found = kafka.watermarks(
            self._settings.kafka, self._topic, partitions, self._settings.kafka.request_timeout_seconds
        )
        with self._status.asking_database(self._name):
            work.claim(partitions, {number: TopicRange(*ends) for number, ends in found.items()})
        self._note_positions(work)
        positions = {number: work.fence.positions[number].next_offset for number in partitions}
        for number, offset in positions.items():
            self._first.expect(number, offset)
            member.start(number, offset)
        self._taken_at = self._clock.monotonic_seconds()
        _log.info("claimed", loop=self._name, positions=positions)

    def _gather(self, member: Membership) -> list[Message]:
        """What waits, joined up to a full batch: a sink that lags gets large batches, and large batches are cheap."""
        messages = member.take(1, IDLE_SECONDS)
        if not messages:
            return []
        deadline = self._clock.monotonic_seconds() + self._settings.sink.batch_wait_seconds
        while len(messages) < self._batch_rows and self._clock.monotonic_seconds() < deadline:
            more = member.take(self._batch_rows - len(messages), JOIN_SECONDS)
            if not more:
                break
            messages += more
        self._taken_at = self._clock.monotonic_seconds()
        messages = [message for message in messages if message.partition() in member.started]
        self._first.check(messages)
        return messages

    def _note_positions(self, work: Work) -> None:
        """Remembers them for the display of lag, which goes on while the database is away."""
        self._positions.update({number: position.next_offset for number, position in work.fence.positions.items()})
        self._unapplied.pass_by(self._positions)

    def _measure(self, member: Membership) -> dict[int, int]:
        """How much waits by partition, every few seconds, else nothing; raises KafkaUnavailable."""
        now = self._clock.monotonic_seconds()
        if now - self._measured_at < MEASURE_SECONDS:
            return {}
        self._measured_at = now
        assigned = {number: self._positions[number] for number in member.assigned if number in self._positions}
        lags = {number: max(0, member.watermarks(number)[1] - offset) for number, offset in assigned.items()}
        self._on_lag(lags)
        self._unapplied.keep_where_records_wait(lags)
        member.show_progress(assigned)
        return lags

    def _well(self) -> None:
        self._failures = 0
        for subject in ("start", "kafka", "database", STOPPED):
            if self._status.trouble(self._name, subject, None) and subject != "start":
                _log.info("going on", loop=self._name, after=subject)

    def _next_wait(self) -> float:
        self._failures += 1
        return RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS)) - 1]

    def _start_over(self, subject: str, failure: Exception, wait_seconds: float) -> None:
        reason = words(failure)
        self._status.trouble(self._name, "start", None)
        is_news = self._status.trouble(self._name, subject, reason)
        if self._member is not None and self._member.broken:
            self._leave()
        if self._member is not None:
            self._member.hold()
        ended = takeover.is_session_ended(self._connection, failure)
        former = self._work.fence if self._work is not None and ended else None
        if not isinstance(failure, KafkaUnavailable):
            self._disconnect()
        if former is not None:
            # A claimer ends a frozen owner's session, so what looks like a failure may be a takeover: that comes first.
            self._wait(wait_seconds)
            if self._give_way(former):
                return
        if is_news:
            _log.error("cannot go on", loop=self._name, reason=reason, error=type(failure).__name__)
        if former is None:
            self._wait(wait_seconds)

    def _give_way(self, former: Fence) -> bool:
        """Whether another worker claimed partitions of the fence meanwhile; if so it is told, and the group left."""
        with self._status.asking_database(self._name):
            epochs = takeover.epochs_since(self._settings.database, former)
        if epochs:
            self._lose_fence("another worker took over", partitions=list(epochs), epochs=epochs)
        return bool(epochs)

    def _lose_fence(self, told: str, **details: object) -> None:
        _log.warning(told, loop=self._name, **details)
        self._on_fence_lost()
        self._leave()
        if self._work is not None:
            self._work.fence.release(list(self._work.fence.positions))
        self._wait(self._next_wait())

    def _halt(self, failure: TallyhookError) -> None:
        """Stays a member and reads nothing until the process is started anew."""
        if self._status.trouble(self._name, STOPPED, str(failure)):
            _log.error("stopped: somebody must look at this", loop=self._name, reason=str(failure))
        if self._member is not None:
            self._member.hold()
        while not self._stop.is_set():
            self._wait(1.0)

    def _wait(self, seconds: float) -> None:
        """Waits and keeps the membership alive meanwhile."""
        deadline = self._clock.monotonic_seconds() + seconds
        while not self._stop.is_set():
            self._status.beat(self._name)
            left = deadline - self._clock.monotonic_seconds()
            if left <= 0:
                return
            if self._member is None:
                self._stop.wait(left)
                continue
            try:
                self._member.take(1, min(left, IDLE_SECONDS))
                self._measure(self._member)
            except (KafkaUnavailable, PositionLost) as failure:
                _log.debug("while waiting", loop=self._name, reason=str(failure))
                self._stop.wait(min(left, IDLE_SECONDS))

    def _leave(self) -> None:
        if self._member is not None:
            self._member.leave(self._positions)
            self._member = None

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._work = None
