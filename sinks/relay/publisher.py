"""The transactional producer: records become visible together with the progress that names them, or not at all."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException, Message

from sinks.relay.record import Record
from sinks.relay.status import Status
from tallyhook import kafka, logs
from tallyhook.errors import KafkaUnavailable, ProducerBroken, TallyhookError
from tallyhook.failpoints import reach
from tallyhook.settings import Settings

CALL_SECONDS = 1.0
"""Longest call into the client: signals are handled between two of them."""

RETRY_SECONDS = 0.05
"""Between two calls, for errors that come back at once."""

TROUBLE_SECONDS = 3.0
"""A call that Kafka does not answer for so long is told on /readyz."""

STOP_SECONDS = 10.0
"""How long a stop waits for Kafka; what is open then is settled by the next start."""

QUEUE_KILOBYTES = 65_536
"""What the client may hold of a transaction before `publish` waits: it bounds memory, not the transaction."""

MESSAGE_BYTES = 2 << 20
"""Largest record the client lets through: above every payload, so that the topic's own limit decides."""

DYING_SECONDS = 5.0
"""How long a process that ends itself for a test still waits for Kafka."""

COMMIT_SENT_SECONDS = 0.001
"""Enough to send the end of a transaction, too short for its confirmation."""

_log = logs.logger(__name__)


class TransactionAborted(TallyhookError):
    """Kafka refused a transaction and it was taken back: nothing of it is visible, its rows go again."""


class Publisher:
    """One transactional id; used from one thread.

    Args:
        transactional_id: one a shard. A second producer with this id fences the first.
    """

    def __init__(self, settings: Settings, transactional_id: str, status: Status) -> None:
        self._status, self._transactional_id = status, transactional_id
        self._unplaced: str | None = None
        transaction_seconds = settings.relay.transaction_timeout_seconds
        # Kafka has surely ended the transaction by then, so a new process can read what came of it.
        self._give_up_seconds = 2 * transaction_seconds
        self._client = kafka.producer(
            settings.kafka,
            linger_ms=settings.profile.linger_ms,
            delivery_timeout_seconds=transaction_seconds,
            transactional_id=transactional_id,
            on_fatal=lambda error: status.fail(_broken(error)),
            extra={
                # One request must fit into a transaction.
                "socket.timeout.ms": int(1000 * min(settings.kafka.request_timeout_seconds, transaction_seconds)),
                "transaction.timeout.ms": int(1000 * transaction_seconds),
                "queue.buffering.max.kbytes": QUEUE_KILOBYTES,
                "compression.type": "lz4",
                "message.max.bytes": MESSAGE_BYTES,
            },
        )

    def fence_others(self) -> None:
        """Ends any older producer of this id and the transaction it left; raises KafkaUnavailable when asked to end."""
        try:
            self._insist("taking over the transactional id", self._client.init_transactions, patience_seconds=None)
        except KafkaException as failure:
            error = failure.args[0]
            raise ProducerBroken(f"transactional id {self._transactional_id}: {kafka.words(error)}") from failure

    @contextmanager
    def transaction(self) -> Iterator[Callable[[Record], None]]:
        """Publishes what the block hands over, in one transaction that commits when the block ends.

        Raises:
            TransactionAborted: Kafka refused; nothing is visible.
            ProducerBroken: this process can never send again, or the outcome stays unknown.
            KafkaUnavailable: the process is to end and Kafka does not answer; the outcome is unknown.
        """
        try:
            self._client.begin_transaction()
        except KafkaException as failure:
            raise _broken(failure.args[0]) from failure
        self._unplaced = None
        reach("relay.begun")
        try:
            yield self._publish
        except KafkaException as failure:
            self._abort(failure.args[0])
            raise TransactionAborted(f"Kafka refused a record: {kafka.words(failure.args[0])}") from failure
        except BaseException:
            self._abort(None)
            raise
        reach("relay.produced")
        self._demand_all_placed()
        reach("relay.prepared", self._await_records)
        reach("relay.commit_sent", self._send_commit)
        try:
            self._insist("committing", self._client.commit_transaction, self._give_up_seconds)
        except KafkaException as failure:
            if not failure.args[0].txn_requires_abort():
                raise _broken(failure.args[0]) from failure
            self._abort(failure.args[0])
            raise TransactionAborted(f"Kafka refused a transaction: {kafka.words(failure.args[0])}") from failure
        reach("relay.committed")

    def serve(self) -> None:
        """Lets the client report what it met while there was nothing to send."""
        self._client.poll(0)

    def _demand_all_placed(self) -> None:
        """Waits for every record's report; takes the transaction back when one has no place in its topic."""

        def flush(seconds: float) -> None:
            if self._client.flush(seconds):
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, retriable=True))  # noqa: SLF001  no public name

        self._insist("sending", flush, self._give_up_seconds)
        if (reason := self._unplaced) is not None:
            self._abort(None)
            raise TransactionAborted(f"Kafka refused a record: {reason}")

    def _reported(self, error: KafkaError | None, message: Message) -> None:
        # What failed with an error fails the commit too, which says what is to be done about it.
        if error is None:
            self._unplaced = kafka.unconfirmed(error, message) or self._unplaced

    def _await_records(self) -> None:
        """Until Kafka has every record of the open transaction; only for a process that dies before it commits."""
        self._client.flush(DYING_SECONDS)

    def _send_commit(self) -> None:
        """Begins to commit what Kafka has; only for a process that dies before it knows the outcome."""
        self._await_records()
        self._client.commit_transaction(COMMIT_SENT_SECONDS)

    def _publish(self, record: Record) -> None:
        began = time.monotonic()
        while True:
            try:
                self._client.produce(
                    record.topic,
                    value=record.value,
                    key=record.key,
                    partition=record.partition,
                    headers=list(record.headers),
                    on_delivery=self._reported,
                )
            except BufferError:
                # The queue is full: the broker is slower than the database, or away.
                self._client.poll(0.1)
                self._heed("sending", began, self._give_up_seconds)
            else:
                return

    def _abort(self, cause: KafkaError | None) -> None:
        if cause is not None:
            _log.warning("transaction aborted, its rows go again", cause=cause.name(), reason=kafka.words(cause))
        try:
            self._insist("aborting", self._client.abort_transaction, self._give_up_seconds)
        except KafkaException as failure:
            raise _broken(failure.args[0]) from failure

    def _insist(self, doing: str, call: Callable[[float], None], patience_seconds: float | None) -> None:
        """Repeats a call for as long as the client asks for it; its outcome is unknown until it returns."""
        began = time.monotonic()
        while True:
            try:
                call(CALL_SECONDS)
            except KafkaException as failure:
                if not failure.args[0].retriable():
                    raise
                self._heed(doing, began, patience_seconds)
                time.sleep(RETRY_SECONDS)
            else:
                self._status.trouble(None)
                return

    def _heed(self, doing: str, began: float, patience_seconds: float | None) -> None:
        """Between two attempts: says what it waits for, and ends the wait when the process must."""
        self._status.check()
        waited = time.monotonic() - began
        if waited > TROUBLE_SECONDS:
            self._status.trouble(f"Kafka does not answer for {waited:.0f} s ({doing})")
        if patience_seconds is not None and waited > patience_seconds:
            raise ProducerBroken(
                f"{doing} has no outcome after {waited:.0f} s: a new process reads from Kafka what came of it"
            )
        if self._status.stopping and (patience_seconds is None or self._status.stopping_seconds > STOP_SECONDS):
            raise KafkaUnavailable(f"Kafka does not answer ({doing}); the next start settles what is open")


def _broken(error: KafkaError) -> ProducerBroken:
    if kafka.refused(error):
        return ProducerBroken(f"Kafka refuses this relay's producer: {kafka.words(error)}")
    return ProducerBroken(
        f"Kafka gave up this relay's producer ({error.name()}: {error.str()}): another relay took over its shard, or"
        " its transaction outlived TALLYHOOK_RELAY_TRANSACTION_TIMEOUT_SECONDS; a new process starts from what was"
        " committed"
    )
