"""What goes on beside the sending: the backlog is measured, and rows that were sent long ago are pruned."""

import threading
import time
from collections.abc import Sequence

from sinks.relay.database import answering, open_connection
from sinks.relay.status import Status
from tallyhook import logs
from tallyhook.errors import DatabaseUnavailable
from tallyhook.metrics import Metrics
from tallyhook.postgres import Connection, Queries
from tallyhook.settings import DatabaseSettings

BACKLOG_SECONDS = 1.0
"""How often the backlog is measured, also while Kafka is away and nothing is sent."""

PRUNE_SECONDS = 30.0
"""How often the oldest rows are looked at."""

PRUNE_ROWS = 1000
"""Most rows of one DELETE: short locks, and a vacuum that keeps up."""

_DAY_SECONDS = 86_400.0

_log = logs.logger(__name__)


class Upkeep:
    """A thread with a connection of its own; a failure of it never stops the sending.

    Args:
        owner: the owner of the lease: another relay's rows are not touched.
        partitions: the shard's.
        retention_days: how long a sent row is kept.
    """

    def __init__(
        self,
        database: DatabaseSettings,
        queries: Queries,
        owner: str,
        partitions: Sequence[int],
        retention_days: float,
        status: Status,
        metrics: Metrics,
    ) -> None:
        self._database, self._queries, self._owner = database, queries, owner
        self._partitions, self._retention_seconds = list(partitions), retention_days * _DAY_SECONDS
        self._status, self._metrics = status, metrics
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, within a few seconds."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        away = False
        while not self._ended.is_set():
            try:
                with open_connection(self._database) as connection:
                    away = False
                    self._work(connection)
            except DatabaseUnavailable as failure:
                if not away:
                    _log.warning("upkeep waits", reason=str(failure))
                away = True
                self._ended.wait(BACKLOG_SECONDS)

    def _work(self, connection: Connection) -> None:
        prune_at = time.monotonic()
        while not self._ended.is_set():
            self._measure(connection)
            if time.monotonic() >= prune_at and not self._status.halted:
                pruned = sum(self._prune(connection, partition) for partition in self._partitions)
                if pruned:
                    _log.info("sent rows pruned", rows=pruned)
                # A partition that had more than one bite of old rows goes on at once.
                prune_at = time.monotonic() + (0.0 if pruned else PRUNE_SECONDS)
            self._ended.wait(BACKLOG_SECONDS)

    def _measure(self, connection: Connection) -> None:
        sent = self._status.sent
        with answering("measuring the backlog"):
            found = connection.execute(self._queries["backlog"], {"partitions": self._partitions}).fetchall()
        waiting = dict.fromkeys(self._partitions, 0)
        for partition, head, cursor in found:
            # The cursor lags by a second; it is all there is until the progress has been read.
            known = max(cursor, sent[partition].seq) if partition in sent else cursor
            waiting[partition] = max(0, head - known)
        for partition, rows in waiting.items():
            self._metrics.gauge("tallyhook_relay_backlog_rows", partition=str(partition)).set(rows)

    def _prune(self, connection: Connection, partition: int) -> int:
        wanted = {
            "partition": partition,
            "owner": self._owner,
            "rows": PRUNE_ROWS,
            "retention_seconds": self._retention_seconds,
        }
        with answering("pruning sent rows"):
            return connection.execute(self._queries["prune"], wanted).rowcount
