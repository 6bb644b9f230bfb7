"""The lease of a shard: it says which relay may start, so that two do not fence each other in turns.

Exactly-once does not hang on it: Kafka's transactional id does that, whatever this table says.
"""

import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sinks.relay.database import answering, open_connection
from sinks.relay.status import Status, patiently
from tallyhook import logs
from tallyhook.errors import DatabaseUnavailable, LeaseLost
from tallyhook.failpoints import reach
from tallyhook.postgres import Connection, Queries
from tallyhook.settings import DatabaseSettings

LOOK_SECONDS = 0.5
"""How often a relay on standby looks whether the shard is free."""

CURSOR_SECONDS = 1.0
"""How often the cursors follow what was sent."""

_log = logs.logger(__name__)


class Lease:
    """The claim of one process on the partitions of a shard, in `relay_cursors`.

    Args:
        partitions: the shard's, in ascending order.
        lease_seconds: validity between renewals, by the database's clock.
    """

    def __init__(
        self,
        database: DatabaseSettings,
        queries: Queries,
        partitions: Sequence[int],
        lease_seconds: float,
        status: Status,
    ) -> None:
        self.owner = uuid.uuid4().hex
        self._database, self._queries, self._status = database, queries, status
        self._partitions, self._lease_seconds = list(partitions), lease_seconds
        self._connection: Connection | None = None
        self._renewing: threading.Thread | None = None
        self._ended = threading.Event()

    def acquire(self) -> None:
        """Waits until the shard is free and takes it; raises Stopping when the process is to end meanwhile."""
        told = False
        while not patiently(self._status, _log, self._try):
            if not told:
                _log.info("standing by: another relay has this shard", partitions=self._partitions)
                told = True
            self._status.pause(LOOK_SECONDS)
        _log.info("lease taken", partitions=self._partitions, owner=self.owner)
        self._renewing = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._renewing.start()

    def release(self) -> None:
        """Gives the shard back, if it is still ours; whatever goes wrong, the lease ends by itself."""
        self._ended.set()
        if self._renewing is not None:
            self._renewing.join(timeout=5)
        if self._connection is None or (self._renewing is not None and self._renewing.is_alive()):
            return
        try:
            with answering("releasing the lease"):
                self._connection.execute(self._queries["release_lease"], {"owner": self.owner} | self._sent())
        except DatabaseUnavailable as failure:
            _log.warning("lease not released, it ends by itself", seconds=self._lease_seconds, reason=str(failure))
        self._connection.close()

    @contextmanager
    def _connected(self, purpose: str) -> Iterator[Connection]:
        """The lease's connection; after a failure the next use opens another one. Raises DatabaseUnavailable."""
        if self._connection is None:
            self._connection = open_connection(self._database)
        try:
            with answering(purpose):
                yield self._connection
        except DatabaseUnavailable:
            self._connection.close()
            self._connection = None
            raise

    def _try(self) -> bool:
        with self._connected("asking for the lease") as connection:
            known = {"partitions": self._partitions, "owner": self.owner}
            connection.execute(self._queries["add_cursors"], known)
            if connection.execute(self._queries["lease_holders"], known).fetchone() is not None:
                return False
            with connection.transaction():
                connection.execute(self._queries["lock_cursors"], known)
                # Another one may have been quicker; with the rows locked the answer holds.
                if connection.execute(self._queries["lease_holders"], known).fetchone() is not None:
                    return False
                connection.execute(self._queries["take_lease"], known | {"lease_seconds": self._lease_seconds})
        return True

    def _renew(self) -> None:
        """The body of the thread: prolongs the lease, notes what was sent, ends the process when the lease is lost."""
        renewed_at, noted = time.monotonic(), self._sent()
        away = False
        while not self._ended.wait(min(CURSOR_SECONDS, self._lease_seconds / 3)):
            sent = self._sent()
            if sent == noted and time.monotonic() - renewed_at < self._lease_seconds / 3:
                continue
            try:
                self._renew_once(sent)
            except DatabaseUnavailable as failure:
                if not away:
                    _log.warning("lease cannot be renewed", reason=str(failure))
                away = True
                continue
            except LeaseLost as failure:
                self._status.fail(failure)
                return
            reach("relay.cursor_noted")
            away, renewed_at, noted = False, time.monotonic(), sent

    def _renew_once(self, sent: dict[str, list[int]]) -> None:
        with self._connected("renewing the lease") as connection:
            wanted = {"owner": self.owner, "lease_seconds": self._lease_seconds} | sent
            renewed = connection.execute(self._queries["renew_lease"], wanted).rowcount
        if renewed != len(self._partitions):
            raise LeaseLost(
                f"another relay took over the partitions {self._partitions}, because this one was silent for longer"
                f" than TALLYHOOK_RELAY_LEASE_SECONDS={self._lease_seconds:g}; the process ends"
            )

    def _sent(self) -> dict[str, list[int]]:
        known = self._status.sent
        seqs = [known[partition].seq if partition in known else -1 for partition in self._partitions]
        return {"partitions": self._partitions, "seqs": seqs}
