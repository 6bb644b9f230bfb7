"""The topic `deposit-correlations`: the second way by which the merchant's service tells whose a deposit is.

Its consumer only inserts. It needs no fence: an insert that is repeated changes nothing, so a plain group that commits
after the insert is enough.
"""

import threading
from collections.abc import Sequence

import msgspec
import psycopg
from confluent_kafka import Consumer, KafkaException, Message

from schemas.reasons import Reason
from schemas.topics import TopicNames
from sinks import quarantine
from sinks.domain.body import read_text
from sinks.domain.decision import Refusal
from sinks.faults import is_event_fault, what_was_refused
from sinks.quarantine import QuarantinedRow, safe_text
from sinks.records import Source, headers_of
from sinks.status import Status
from tallyhook import logs
from tallyhook.errors import DatabaseUnavailable
from tallyhook.failpoints import reach
from tallyhook.kafka import client_config
from tallyhook.postgres import Connection, Queries, connect
from tallyhook.settings import Settings

NAME = "correlations"
BATCH_ROWS = 1000
IDLE_SECONDS = 0.2
RETRY_SECONDS = 1.0
TEXT_BYTES_MAX = 512

_log = logs.logger(__name__)


class Correlation(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """One record's value: to which order and user a deposit belongs."""

    pg_deposit_id: str
    merchant_reference: str
    our_order_id: str
    our_user_id: str


_decode = msgspec.json.Decoder(Correlation).decode


class CorrelationConsumer:
    """Inserts what the topic brings until `stop` is set; to be run on one thread."""

    def __init__(self, settings: Settings, status: Status, stop: threading.Event) -> None:
        installation = settings.installation
        self._settings, self._status, self._stop = settings, status, stop
        self._topic = TopicNames(installation.topic_prefix).deposit_correlations
        self._queries = Queries("sinks", "sql/correlations.sql", installation.schema_name)
        self._quarantine = Queries("sinks", "sql/quarantine.sql", installation.schema_name)

    def run(self) -> None:
        """Consumes; whatever fails is waited out and read again from the last commit."""
        while not self._stop.is_set():
            try:
                self._consume()
            except (psycopg.Error, DatabaseUnavailable, KafkaException) as failure:
                if self._status.trouble(NAME, "trouble", str(failure).strip()):
                    _log.error("cannot go on", loop=NAME, reason=str(failure), error=type(failure).__name__)
                self._status.beat(NAME)
                self._stop.wait(RETRY_SECONDS)

    def _consume(self) -> None:
        self._status.beat(NAME)
        with self._status.asking_database(NAME):
            connection = connect(self._settings.database, "sink")
        consumer = Consumer(
            client_config(self._settings.kafka)
            | {
                "group.id": self._settings.installation.group_id("sink-correlations"),
                "group.protocol": "consumer",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        try:
            consumer.subscribe([self._topic])
            while not self._stop.is_set():
                self._status.beat(NAME)
                messages = consumer.consume(BATCH_ROWS, IDLE_SECONDS)
                for message in messages:
                    error = message.error()
                    if error is not None:
                        raise KafkaException(error)
                if messages:
                    with self._status.asking_database(NAME):
                        insert(connection, self._queries, self._quarantine, messages)
                    reach("sink.correlations_inserted")
                    consumer.commit(asynchronous=False)
                self._status.trouble(NAME, "trouble", None)
        finally:
            consumer.close()
            connection.close()


def insert(connection: Connection, queries: Queries, quarantined: Queries, messages: Sequence[Message]) -> None:
    """Inserts new correlations and sets aside records that are none or contradict what is stored, in one transaction.

    A record that the database refuses is found by inserting one by one.
    """
    try:
        with connection.transaction():
            _insert(connection, queries, quarantined, messages)
    except psycopg.Error as failure:
        if not is_event_fault(failure):
            raise
        if len(messages) > 1:
            for message in messages:
                insert(connection, queries, quarantined, [message])
            return
        refusal = Refusal("database_refused", what_was_refused(failure))
        with connection.transaction():
            quarantine.add(connection, quarantined, [_row(messages[0], refusal.reason, refusal.detail)])


def _insert(connection: Connection, queries: Queries, quarantined: Queries, messages: Sequence[Message]) -> None:
    good: list[tuple[Message, Correlation]] = []
    bad: list[QuarantinedRow] = []
    for message in messages:
        if message.value() is None:
            continue  # A tombstone: what is known of a deposit stays known.
        read = read_correlation(message.value() or b"")
        if isinstance(read, Refusal):
            bad.append(_row(message, read.reason, read.detail))
        else:
            good.append((message, read))
    if good:
        rows = [row for _, row in good]
        connection.execute(
            queries["insert"],
            (
                [row.pg_deposit_id for row in rows],
                [row.merchant_reference for row in rows],
                [row.our_order_id for row in rows],
                [row.our_user_id for row in rows],
            ),
        )
        found = connection.execute(queries["find"], ([row.pg_deposit_id for row in rows],)).fetchall()
        stored = {row[0]: Correlation(*row) for row in found}
        bad += [
            _row(message, "correlation_collision", _contradiction(row, stored.get(row.pg_deposit_id)))
            for message, row in good
            if stored.get(row.pg_deposit_id) != row
        ]
    if bad:
        quarantine.add(connection, quarantined, bad)


def read_correlation(raw: bytes) -> Correlation | Refusal:
    """The correlation in a record's value, or why there is none."""
    text = read_text(raw)
    if isinstance(text, Refusal):
        return Refusal("correlation_shape", text.detail)
    try:
        row = _decode(raw)
    except msgspec.ValidationError as failure:
        return Refusal("correlation_shape", str(failure))
    for name in row.__struct_fields__:
        value: str = getattr(row, name)
        if not 0 < len(value.encode()) <= TEXT_BYTES_MAX:
            return Refusal("correlation_shape", f"{name} is empty or longer than {TEXT_BYTES_MAX} bytes")
    return row


def _contradiction(row: Correlation, stored: Correlation | None) -> str:
    if stored is None:
        return f"merchant_reference {row.merchant_reference} belongs to another deposit"
    return (
        f"deposit {row.pg_deposit_id} was given to order {stored.our_order_id}, user {stored.our_user_id},"
        f" reference {stored.merchant_reference} before"
    )


def _row(message: Message, reason: Reason, detail: str) -> QuarantinedRow:
    key = message.key()
    return QuarantinedRow(
        stage="sinks",
        reason=reason,
        detail=detail,
        event_id=None,
        object_id=None if key is None else safe_text(key),
        raw=message.value() or b"",
        headers=headers_of(message),
        source=Source(message.topic() or "", message.partition() or 0, message.offset() or 0),
    )
