"""Plays the merchant's own service: its rows of pg_deposit_correlations appear at their virtual moments, in batches."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import psycopg

from tallyhook.errors import DatabaseUnavailable, TallyhookError
from tallyhook.gateway.virtual_time import Pace
from tallyhook.gateway.world.model import Correlation
from tallyhook.logs import logger
from tallyhook.postgres import Connection, Queries, connect
from tallyhook.settings import DatabaseSettings

_log = logger(__name__)

MAX_BATCH: Final = 500
GATHER_SECONDS: Final = 0.05
"""How long the first row of a batch waits for others, in wall time."""

RETRY_SECONDS: Final = 1.0


class CorrelationWriter:
    """Writes each row when its moment has come, and again and again while the database is away.

    Args:
        correlations: those without a moment are never written.
        pace: virtual time.

    Attributes:
        written: rows that stand in the table.
        finished: set once every row that has a moment is written.
    """

    def __init__(
        self, correlations: Iterable[Correlation], database: DatabaseSettings, schema: str, pace: Pace
    ) -> None:
        dated = [(row.written_at, row) for row in correlations if row.written_at is not None]
        self._waiting = sorted(dated, key=lambda pair: pair[0])
        self._database, self._pace = database, pace
        self._queries = Queries("tallyhook.gateway", "correlations.sql", schema)
        self._connection: Connection | None = None
        self._stopping = asyncio.Event()
        self.written = 0
        self.finished = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Rows not yet written."""
        return len(self._waiting) - self.written

    async def run(self) -> None:
        """Returns once all is written, or after `stop`; raises TallyhookError when the database holds another world."""
        try:
            while self.waiting and not self._stopping.is_set():
                await self._pace.wait(self._waiting[self.written][0], self._stopping)
                await self._pause(GATHER_SECONDS)
                await self._write_due()
            if not self.waiting:
                self.finished.set()
        finally:
            self._disconnect()

    def stop(self) -> None:
        """Begins no further batch."""
        self._stopping.set()

    async def _write_due(self) -> None:
        now = self._pace.now()
        first = self.written
        batch = [row for moment, row in self._waiting[first : first + MAX_BATCH] if moment <= now]
        if not batch or self._stopping.is_set():
            return
        try:
            await asyncio.to_thread(self._write, batch)
            self.written += len(batch)
        except psycopg.errors.UniqueViolation as failure:
            raise TallyhookError(
                f"pg_deposit_correlations already holds a merchant_reference of this world with another deposit "
                f"({failure.diag.message_detail}): choose another --seed or an empty schema"
            ) from failure
        except (DatabaseUnavailable, psycopg.OperationalError, psycopg.InterfaceError) as failure:
            _log.warning("correlations wait for the database", rows=len(batch), why=str(failure).strip())
            self._disconnect()
            await self._pause(RETRY_SECONDS)
        except psycopg.Error as failure:
            raise TallyhookError(
                f"correlations cannot be written: {str(failure).strip()}; `tallyhook migrate` makes the tables"
            ) from failure

    def _write(self, batch: list[Correlation]) -> None:
        if self._connection is None:
            self._connection = connect(self._database, "gateway")
        self._connection.execute(
            self._queries["write"],
            (
                [row.pg_deposit_id for row in batch],
                [row.merchant_reference for row in batch],
                [row.our_order_id for row in batch],
                [row.our_user_id for row in batch],
            ),
        )

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
