"""What the stores say, whichever worker should act: measured beside the loops, also while these stand still."""

import threading

import psycopg

from sinks.measures import Measures
from tallyhook import logs
from tallyhook.clock import Clock
from tallyhook.errors import DatabaseUnavailable
from tallyhook.postgres import Connection, Queries, connect, words
from tallyhook.settings import DatabaseSettings, Installation

LOOK_SECONDS = 5.0
BALANCES_SECONDS = 60.0
"""How often all balances are read."""

STATEMENT_SECONDS = 10
JOIN_SECONDS = 2.0

_log = logs.logger(__name__)


class StoreWatch(threading.Thread):
    """A thread with a connection of its own; a failure of it never touches the work."""

    def __init__(
        self, database: DatabaseSettings, installation: Installation, measures: Measures, clock: Clock
    ) -> None:
        super().__init__(name="store-watch", daemon=True)
        self._database, self._measures, self._clock = database, measures, clock
        self._queries = Queries("sinks", "sql/store_watch.sql", installation.schema_name)
        self._stopping = threading.Event()
        self._balances_at = float("-inf")

    def run(self) -> None:
        """Until `stop`."""
        away = False
        while not self._stopping.is_set():
            try:
                connection = connect(self._database, "store-watch")
                try:
                    connection.execute(f"SET statement_timeout = '{STATEMENT_SECONDS}s'")
                    while not self._stopping.is_set():
                        self.look(connection)
                        away = False
                        self._stopping.wait(LOOK_SECONDS)
                finally:
                    connection.close()
            except (psycopg.Error, DatabaseUnavailable) as failure:
                if not away:
                    _log.warning("the stores are not measured", reason=words(failure))
                away = True
                self._stopping.wait(LOOK_SECONDS)

    def stop(self) -> None:
        """Ends the thread; a statement under way is not waited for longer than two seconds."""
        self._stopping.set()
        if self.is_alive():
            self.join(timeout=JOIN_SECONDS)

    def look(self, connection: Connection) -> None:
        """Measures once."""
        row = connection.execute(self._queries["outbox"]).fetchone()
        if row is not None:
            self._measures.outbox(unsent_rows=row[0], oldest_seconds=row[1])
        row = connection.execute(self._queries["quarantined"]).fetchone()
        if row is not None:
            self._measures.quarantined_open(row[0])
        if self._clock.monotonic_seconds() - self._balances_at >= BALANCES_SECONDS:
            # Noted before it is known whether it works: what takes too long must not be tried over and over.
            self._balances_at = self._clock.monotonic_seconds()
            row = connection.execute(self._queries["negative_balances"]).fetchone()
            if row is not None:
                self._measures.negative_balances(row[0])
