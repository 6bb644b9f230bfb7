"""The topic `deposit-correlations`: the second way by which the merchant's service tells whose a deposit is.

Its consumer only inserts. It needs no fence: an insert that is repeated changes nothing. How far it got is noted in the
database after the insert, and it reads from there: a database that lost commits gets its correlations again. What the
group commits is for displays of lag alone.
"""

import threading
import time
from collections.abc import Sequence

import msgspec
import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

from schemas.reasons import Reason
from schemas.topics import TopicNames
from sinks import quarantine
from sinks.domain.body import read_text
from sinks.domain.decision import Refusal
from sinks.faults import is_event_fault, what_was_refused
from sinks.quarantine import QuarantinedRow, safe_text
from sinks.records import Source, headers_of
from sinks.status import Status
from tallyhook import logs, postgres
from tallyhook.errors import DatabaseUnavailable, KafkaUnavailable
from tallyhook.failpoints import reach
from tallyhook.kafka import client_config, words
from tallyhook.postgres import Connection, Queries, connect
from tallyhook.settings import Settings

NAME = "correlations"
BATCH_ROWS = 1000
IDLE_SECONDS = 0.2
RETRY_SECONDS = 1.0
LOOK_SECONDS = 2.0
"""How often it looks whether the database still has what was inserted, also while nothing comes."""

SETTLING_SECONDS = 5.0
"""What Kafka refuses is told well within it, also to a member that gets no partitions."""

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
        self._group_id = installation.group_id("sink-correlations")
        self._positions: dict[int, int] = {}

    def run(self) -> None:
        """Consumes; whatever fails is waited out, and read again from where the database says."""
        while not self._stop.is_set():
            try:
                self._consume()
            except (psycopg.Error, DatabaseUnavailable, KafkaUnavailable, KafkaException) as failure:
                if self._status.trouble(NAME, "trouble", postgres.words(failure)):
                    _log.error("cannot go on", loop=NAME, reason=postgres.words(failure), error=type(failure).__name__)
                self._status.beat(NAME)
                self._stop.wait(RETRY_SECONDS)

    def _consume(self) -> None:
        self._status.beat(NAME)
        self._positions.clear()
        with self._status.asking_database(NAME):
            connection = connect(self._settings.database, "sink")
        consumer = Consumer(
            client_config(self._settings.kafka)
            | {
                "group.id": self._group_id,
                "group.protocol": "consumer",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        try:
            consumer.subscribe(
                [self._topic],
                on_assign=lambda client, places: self._go_on(client, places, connection),
                on_revoke=self._give_back,
            )
            looked_at = time.monotonic()
            settled_at = looked_at + SETTLING_SECONDS
            while not self._stop.is_set():
                self._status.beat(NAME)
                if time.monotonic() - looked_at >= LOOK_SECONDS:
                    self._look(connection)
                    looked_at = time.monotonic()
                messages = consumer.consume(BATCH_ROWS, IDLE_SECONDS)
                for message in messages:
                    error = message.error()
                    if error is not None:
                        raise KafkaUnavailable(f"{self._topic}, consumer group {self._group_id}: {words(error)}")
                if messages:
                    with self._status.asking_database(NAME):
                        insert(connection, self._queries, self._quarantine, messages)
                        self._note(connection, messages)
                    reach("sink.correlations_inserted")
                    consumer.commit(asynchronous=False)
                if self._positions or time.monotonic() > settled_at:
                    self._status.trouble(NAME, "trouble", None)
        finally:
            consumer.close()
            connection.close()

    def _go_on(self, client: Consumer, places: list[TopicPartition], connection: Connection) -> None:
        """Reads assigned partitions from where the database says; from the beginning where it says nothing.

        Called within `consume`, on the same thread; whatever the database fails of is raised there.
        """
        stored = self._stored(connection)
        for place in places:
            place.offset = stored.get(place.partition, OFFSET_BEGINNING)
            self._positions[place.partition] = stored.get(place.partition, 0)
        client.incremental_assign(places)

    def _give_back(self, _: Consumer, places: list[TopicPartition]) -> None:
        for place in places:
            self._positions.pop(place.partition, None)

    def _stored(self, connection: Connection) -> dict[int, int]:
        with self._status.asking_database(NAME):
            return dict(connection.execute(self._queries["positions"], (self._topic,)).fetchall())

    def _look(self, connection: Connection) -> None:
        """Raises DatabaseUnavailable, upon which all is read anew, where the database lost what was inserted."""
        stored = self._stored(connection)
        lost = [number for number, offset in self._positions.items() if stored.get(number, 0) < offset]
        if lost:
            raise DatabaseUnavailable(f"the database lost correlations of the partitions {lost}: they are read again")

    def _note(self, connection: Connection, messages: Sequence[Message]) -> None:
        """Notes how far it got, after the insert: what lies between the two is inserted once more, which is nothing."""
        ends = {message.partition() or 0: (message.offset() or 0) + 1 for message in messages}
        columns = (self._topic, list(ends), list(ends.values()), self._topic)
        if connection.execute(self._queries["note"], columns).rowcount == len(ends):
            self._positions.update(ends)


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
