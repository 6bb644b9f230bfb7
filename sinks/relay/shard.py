"""The work of one shard: rows that wait go out in order, in transactions that carry the progress."""

from collections import Counter
from collections.abc import Iterator, Sequence

from schemas.topics import TopicNames
from sinks.relay import progress, topics
from sinks.relay.allotment import Range, allot, portions
from sinks.relay.outbox import Outbox
from sinks.relay.position import Position
from sinks.relay.publisher import Publisher, TransactionAborted
from sinks.relay.record import OutboxRow, Record, record_of, topic_of
from sinks.relay.status import RETRY_SECONDS, Status, patiently
from tallyhook import logs
from tallyhook.clock import Clock
from tallyhook.errors import DatabaseUnavailable, LeaseLost, OutboxGap, OutboxRewound, TopicMismatch
from tallyhook.failpoints import reach
from tallyhook.metrics import Metrics
from tallyhook.postgres import Queries
from tallyhook.settings import Settings

READ_ROWS = 250
"""Most rows in memory at once: a payload may have 64 KiB, so this is 16 MiB at worst."""

READ_SECONDS = 30.0
"""Bound of one attempt to read the progress, and of one look at the topics."""

_log = logs.logger(__name__)


class Shard:
    """The partitions of one shard and the producer that has their transactional id.

    Args:
        partitions: those whose number modulo the number of shards is this shard.
        publisher: has fenced every older one.
    """

    def __init__(
        self,
        settings: Settings,
        partitions: Sequence[int],
        queries: Queries,
        publisher: Publisher,
        status: Status,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._settings, self._partitions, self._queries = settings, list(partitions), queries
        self._publisher, self._status, self._metrics, self._clock = publisher, status, metrics, clock
        self._names = TopicNames(settings.installation.topic_prefix)
        self._source = f"/tallyhook/{settings.installation.schema_name}"
        self._topics: frozenset[str] = frozenset()
        self._sent: dict[int, Position] | None = None
        self._failures = 0

    def work(self) -> None:
        """Sends until the process is to end.

        Raises:
            LeaseLost, ProducerBroken: the process must be replaced.
            OutboxGap, PositionLost, TopicMismatch: somebody must look at it; nothing was skipped.
            OutboxRewound: likewise; once the database has the rows again, this may be called again.
            Stopping, KafkaUnavailable: the process is to end and a dependency did not answer.
        """
        while not self._status.stopping:
            try:
                with patiently(self._status, _log, self._open) as outbox:
                    self._drain(outbox)
            except (DatabaseUnavailable, TransactionAborted) as failure:
                self._fall_back(failure)
        self._status.check()

    def _open(self) -> Outbox:
        """A connection whose database is known to agree with Kafka. Each new one may lead to another server."""
        channel = self._settings.installation.channel("outbox")
        outbox = Outbox(self._settings.database, self._queries, channel, self._partitions)
        try:
            self._topics = topics.check(self._settings, outbox.installed_topics(), timeout_seconds=READ_SECONDS)
            self._settle(outbox)
        except BaseException:
            outbox.close()
            raise
        if self._status.halted:
            self._status.mended()
            self._metrics.gauge("tallyhook_relay_halted", reason="outbox_rewound").set(0)
            _log.info("mended: database and progress agree again")
        return outbox

    def _settle(self, outbox: Outbox) -> None:
        topic = self._names.relay_progress
        found = progress.read(self._settings.kafka, topic, self._partitions, timeout_seconds=READ_SECONDS)
        reach("relay.progress_read")
        if self._sent is not None and found != self._sent:
            raise LeaseLost(f"{topic} was written by somebody else: another relay has this shard, so the process ends")
        ids = outbox.row_ids({partition: position.seq for partition, position in found.items()})
        progress.check(topic, found, outbox.cursors(), ids)
        if self._sent is None:
            _log.info("starting after what was sent", seqs={p: found[p].seq for p in sorted(found)})
        self._sent = found
        self._status.sent = found

    def _drain(self, outbox: Outbox) -> None:
        most_rows = self._settings.relay.transaction_rows
        gather_seconds = self._settings.profile.relay_gather_seconds
        while not self._status.stopping:
            self._publisher.serve()
            ranges = self._waiting(outbox, most_rows)
            if ranges:
                self._send(outbox, ranges)
            self._failures = 0
            self._status.trouble(None)
            rows = sum(one.rows for one in ranges)
            if not rows:
                self._await_rows(outbox)
            elif rows < most_rows // 2:
                # Kafka's cost follows the partitions a transaction touches, so a fuller one is cheaper.
                self._status.pause(gather_seconds)

    def _waiting(self, outbox: Outbox, most_rows: int) -> list[Range]:
        heads = outbox.heads()
        sent = self._sent or {}
        for partition, position in sent.items():
            if heads.get(partition, -1) < position.seq:
                raise OutboxRewound(progress.rewound(partition, position))
        return allot({p: sent[p].seq if p in sent else -1 for p in self._partitions}, heads, most_rows)

    def _await_rows(self, outbox: Outbox) -> None:
        wake_at = self._clock.monotonic_seconds() + self._settings.relay.poll_seconds
        while not self._status.stopping:
            left = wake_at - self._clock.monotonic_seconds()
            if left <= 0 or outbox.wait(left):
                return

    def _send(self, outbox: Outbox, ranges: Sequence[Range]) -> None:
        """One transaction. When reading fails in the middle, what was read is whole and goes out with its progress."""
        began = self._clock.monotonic_seconds()
        last: dict[int, Position] = {}
        received: list[tuple[str, float]] = []
        failure: DatabaseUnavailable | OutboxGap | TopicMismatch | None = None
        reading = self._read(outbox, ranges)
        # Before the transaction: one that is taken back while still empty is refused by Kafka as an invalid state.
        portion = next(reading)
        with self._publisher.transaction() as publish:
            while portion:
                for row, record in portion:
                    publish(record)
                    last[row.partition] = Position(row.seq, row.id)
                    received.append((row.topic, row.received_at.timestamp()))
                try:
                    portion = next(reading, [])
                except (DatabaseUnavailable, OutboxGap, TopicMismatch) as met:
                    portion, failure = [], met
            for partition, position in last.items():
                publish(Record(self._names.relay_progress, partition, str(partition), position.encode(), []))
        self._sent = {**(self._sent or {}), **last}
        self._status.sent = self._sent
        self._count(received, self._clock.monotonic_seconds() - began)
        if failure is not None:
            raise failure

    def _read(self, outbox: Outbox, ranges: Sequence[Range]) -> Iterator[list[tuple[OutboxRow, Record]]]:
        """The rows of the ranges with their records, a portion at a time."""
        for portion in portions(ranges, READ_ROWS):
            rows = outbox.rows(portion)
            yield [(row, record_of(row, self._topic(row), self._source)) for row in rows]

    def _topic(self, row: OutboxRow) -> str:
        topic = topic_of(self._names, row.topic)
        if topic not in self._topics:
            raise topics.unknown_effect(row.topic, row.partition, row.seq)
        return topic

    def _count(self, received: Sequence[tuple[str, float]], seconds: float) -> None:
        now = self._clock.now().timestamp()
        latency = self._metrics.histogram("tallyhook_post_to_effect_seconds")
        for _, at in received:
            latency.observe(max(0.0, now - at))
        for effect, rows in Counter(effect for effect, _ in received).items():
            self._metrics.counter("tallyhook_relay_sent_total", effect=effect).inc(rows)
        self._metrics.counter("tallyhook_relay_transactions_total").inc()
        self._metrics.histogram("tallyhook_relay_transaction_rows").observe(len(received))
        self._metrics.histogram("tallyhook_relay_transaction_seconds").observe(seconds)

    def _fall_back(self, failure: DatabaseUnavailable | TransactionAborted) -> None:
        """Everything is read again from what was committed last: first at once, then with growing patience."""
        if isinstance(failure, TransactionAborted):
            self._metrics.counter("tallyhook_relay_aborted_total").inc()
        _log.warning("reading again from what was committed", reason=str(failure), failures=self._failures + 1)
        self._status.trouble(str(failure))
        self._status.pause(RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)])
        self._failures += 1
