"""The keeper of the gateway's sequence: one of the sinks, on a thread of its own, outside of every batch.

A merchant's numbers come through all partitions, so that keeping them within the batches would make the workers wait
for each other. Instead one process at a time reads behind them, once a second or at once while more waits.
"""

import os
import socket
import threading
import uuid
from collections.abc import Sequence

import psycopg

from schemas.topics import TopicNames
from sinks import migrations
from sinks.measures import Measures
from sinks.sequence_sources import Inbox, SetAside, Source
from sinks.sequence_test_traffic import TopicReader, TrafficOfTests
from sinks.sequences import Sequences
from sinks.status import Status
from tallyhook import logs
from tallyhook.clock import Clock
from tallyhook.errors import DatabaseUnavailable, KafkaUnavailable, SchemaMismatch
from tallyhook.failpoints import reach
from tallyhook.postgres import Connection, Queries, connect, words
from tallyhook.settings import Settings

NAME = "sequences"
TURN_SECONDS = 1.0
MEASURE_SECONDS = 5.0
RETRY_SECONDS = 2.0
LEASE_SECONDS = 5.0
FROZEN_SECONDS = 30
"""So long a keeper may stand still within a transaction before the database ends it."""

_log = logs.logger(__name__)


class SequenceKeeper:
    """Keeps the numbers until `stop` is set; to be run on one thread."""

    def __init__(
        self, settings: Settings, status: Status, measures: Measures, stop: threading.Event, clock: Clock
    ) -> None:
        self._settings, self._status, self._measures = settings, status, measures
        self._stop, self._clock = stop, clock
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._topic = TopicNames(settings.installation.test_prefix).events

    def run(self) -> None:
        """Keeps; whatever fails is waited out, and read again from the stored cursors."""
        if not self._settings.installation.livemode:
            # An installation for test events never sees the numbers of the live ones, so that gaps say nothing there.
            self._stop.wait()
            return
        reader = TopicReader(self._settings.kafka, self._topic, self._clock)
        try:
            while not self._stop.is_set():
                try:
                    self._keep(reader)
                except (psycopg.Error, DatabaseUnavailable, SchemaMismatch) as failure:
                    self._tell("database", failure)
                    self._status.beat(NAME)
                    self._stop.wait(RETRY_SECONDS)
        finally:
            reader.close()

    def _keep(self, reader: TopicReader) -> None:
        self._status.beat(NAME)
        with self._status.asking_database(NAME):
            connection = connect(self._settings.database, "sequences")
        try:
            with self._status.asking_database(NAME):
                migrations.check(connection, self._settings.installation)
                work = Turns(connection, self._settings, self._owner, reader)
            measured_at = float("-inf")
            while not self._stop.is_set():
                self._status.beat(NAME)
                self._fetch(work)
                with self._status.asking_database(NAME):
                    more = work.turn()
                    if not more and self._clock.monotonic_seconds() - measured_at >= MEASURE_SECONDS:
                        measured_at = self._clock.monotonic_seconds()
                        self._measures.gaps(*work.measure())
                self._status.trouble(NAME, "database", None)
                if not more:
                    self._stop.wait(TURN_SECONDS)
            work.leave()
        finally:
            connection.close()

    def _fetch(self, work: "Turns") -> None:
        try:
            work.fetch()
        except KafkaUnavailable as failure:
            self._tell("kafka", failure)
        else:
            self._status.trouble(NAME, "kafka", None)

    def _tell(self, subject: str, failure: Exception) -> None:
        if self._status.trouble(NAME, subject, words(failure)):
            _log.error("cannot go on", loop=NAME, reason=words(failure), error=type(failure).__name__)


class Turns:
    """The work of a keeper on one connection.

    Args:
        connection: autocommit, used by nobody else.
        owner: the process's name for the lease.
        reader: reads the topic of test events; outlives the connection.
    """

    def __init__(self, connection: Connection, settings: Settings, owner: str, reader: TopicReader) -> None:
        schema = settings.installation.schema_name
        self._connection, self._owner = connection, owner
        self._queries = Queries("sinks", "sql/sequences.sql", schema)
        connection.execute(self._queries["bound_transaction"], (f"{FROZEN_SECONDS}s",))
        self._sequences = Sequences(connection, schema)
        self._tests = TrafficOfTests(connection, self._queries, reader)
        self._sources: Sequence[Source] = (
            Inbox(connection, self._queries, settings.installation.partitions),
            SetAside(connection, self._queries),
            self._tests,
        )
        self._tests.failed()
        self._leads = False

    def fetch(self) -> None:
        """Reads what does not lie in the database, if this process is the keeper; raises KafkaUnavailable."""
        if self._leads:
            self._tests.fetch()

    def turn(self) -> bool:
        """Takes a page of each source in, in one transaction with the cursors; gives whether more waits."""
        try:
            with self._connection.transaction():
                self._leads = self._take_lease()
                pages = [source.read() for source in self._sources] if self._leads else []
                self._sequences.add(seen for page in pages for seen in page.seen)
                reach("sink.sequence_written")
        except BaseException:
            for source in self._sources:
                source.failed()
            raise
        reach("sink.sequence_committed")
        for source in self._sources:
            if self._leads:
                source.taken()
            else:
                source.failed()
        return any(page.more for page in pages)

    def measure(self) -> tuple[float, float]:
        """How many numbers are missing, and for how many seconds the longest of them, whoever is the keeper."""
        row = self._connection.execute(self._queries["measure"]).fetchone()
        return (0.0, 0.0) if row is None else (row[0], row[1])

    def leave(self) -> None:
        """Lets another process take over at once."""
        if self._leads:
            self._connection.execute(self._queries["end_lease"], (self._owner,))

    def _take_lease(self) -> bool:
        lease = {"owner": self._owner, "seconds": LEASE_SECONDS}
        return self._connection.execute(self._queries["take_lease"], lease).rowcount == 1
