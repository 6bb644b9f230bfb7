"""Whether the database holds what must come of a world, once the pipeline has judged every accepted delivery."""

import time
from collections.abc import Callable
from typing import Final

import psycopg

from tallyhook.clock import Clock
from tallyhook.errors import DatabaseUnavailable, TallyhookError
from tallyhook.gateway.world.expected import differences
from tallyhook.gateway.world.model import World
from tallyhook.postgres import Connection, Queries, connect
from tallyhook.settings import DatabaseSettings

LOOK_SECONDS: Final = 0.25
SETTLE_SECONDS: Final = 10.0
"""How long events that waited for a correlation may still take after everything was judged."""


class Check:
    """Compares the tables with the world's expected end.

    Args:
        patience_seconds: longest wait for the pipeline, in wall time.
        stopped: asked now and then; once true, the check ends with what it has.
    """

    def __init__(
        self,
        world: World,
        database: DatabaseSettings,
        schema: str,
        *,
        patience_seconds: float,
        clock: Clock,
        stopped: Callable[[], bool],
    ) -> None:
        self._world, self._database, self._schema = world, database, schema
        self._patience_seconds, self._clock, self._stopped = patience_seconds, clock, stopped
        self._queries = Queries("tallyhook.gateway", "check.sql", schema)
        self._before = 0

    def begin(self) -> None:
        """Notes what the database has judged before; to be called before the first delivery.

        Raises:
            DatabaseUnavailable: PostgreSQL does not answer.
            TallyhookError: the tables are not there.
        """
        with connect(self._database, "gateway-check") as connection:
            try:
                self._before = self._judged(connection)
            except psycopg.Error as failure:
                raise TallyhookError(
                    f"the check cannot read the tables: {str(failure).strip()}; `tallyhook migrate` makes them"
                ) from failure

    def differences(self, accepted: int) -> list[str]:
        """One sentence a difference; none when all is as it must be.

        Where events were withheld and fetched from the API since, the end that has them is as good.

        Args:
            accepted: deliveries of live events that were answered 2xx.
        """
        deadline = self._clock.monotonic_seconds() + self._patience_seconds
        sentences = ["the check was stopped before it began"]
        while not self._stopped():
            try:
                with connect(self._database, "gateway-check") as connection:
                    return self._differences(connection, accepted, deadline)
            except (DatabaseUnavailable, psycopg.OperationalError) as failure:
                sentences = [f"the check could not read the database: {str(failure).strip()}"]
                if self._clock.monotonic_seconds() >= deadline:
                    break
                time.sleep(LOOK_SECONDS)
        return sentences

    def _differences(self, connection: Connection, accepted: int, deadline: float) -> list[str]:
        while (judged := self._judged(connection) - self._before) < accepted:
            if self._stopped() or self._clock.monotonic_seconds() >= deadline:
                return [f"the pipeline has judged {judged} of {accepted} accepted deliveries", *self._now(connection)]
            time.sleep(LOOK_SECONDS)
        settled = min(deadline, self._clock.monotonic_seconds() + SETTLE_SECONDS)
        while (found := self._now(connection)) and self._clock.monotonic_seconds() < settled and not self._stopped():
            time.sleep(LOOK_SECONDS)
        return found

    def _now(self, connection: Connection) -> list[str]:
        found = differences(self._world.expected, connection, self._schema)
        withheld = any(event.never_delivered for event in self._world.events)
        if found and withheld and not differences(self._world.expected_complete, connection, self._schema):
            return []
        return found

    def _judged(self, connection: Connection) -> int:
        row = connection.execute(self._queries["judged"]).fetchone()
        return int(row[0]) if row is not None else 0
