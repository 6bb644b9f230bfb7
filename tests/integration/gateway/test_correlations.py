"""The merchant's own service: its rows come at their moments, in batches, whatever the database does meanwhile."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import SecretStr

from sinks.migrations import upgrade
from tallyhook.errors import TallyhookError
from tallyhook.gateway.correlations import MAX_BATCH, CorrelationWriter
from tallyhook.gateway.world.model import Correlation
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings, Installation
from tests.unit.gateway_delivery.stepping import START, StepTime

PATIENCE_SECONDS = 30.0


@pytest.fixture
def connection(database_settings: DatabaseSettings, installation: Installation) -> Iterator[Connection]:
    """To tables of the test's own."""
    upgrade(database_settings, installation)
    with connect(database_settings, "test") as opened:
        opened.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(installation.schema_name)))
        yield opened


def rows(connection: Connection) -> set[tuple[Any, ...]]:
    """What stands in the table."""
    found = connection.execute(
        "SELECT pg_deposit_id, merchant_reference, our_order_id, our_user_id FROM pg_deposit_correlations"
    )
    return set(found.fetchall())


def correlation(number: int, *, minutes: float | None) -> Correlation:
    """Written so many minutes after the start; None: never."""
    moment = None if minutes is None else START + timedelta(minutes=minutes)
    return Correlation(f"dep_{number}", f"ref_{number}", f"ord_{number}", f"ผู้ใช้_{number}", moment)


def values(correlations: Sequence[Correlation]) -> set[tuple[Any, ...]]:
    """The rows they make."""
    return {(c.pg_deposit_id, c.merchant_reference, c.our_order_id, c.our_user_id) for c in correlations}


async def test_every_row_with_a_moment_is_written(
    connection: Connection, database_settings: DatabaseSettings, installation: Installation
) -> None:
    """More than a batch at once, in order of their moments; the others never, and a second run changes nothing."""
    dated = [correlation(number, minutes=number % 7) for number in range(MAX_BATCH + 40)]
    for _ in range(2):
        writer = CorrelationWriter(
            [*dated, correlation(9999, minutes=None)], database_settings, installation.schema_name, StepTime()
        )
        assert writer.waiting == len(dated)
        await asyncio.wait_for(writer.run(), PATIENCE_SECONDS)
        assert writer.finished.is_set()
        assert (writer.written, writer.waiting) == (len(dated), 0)
        assert rows(connection) == values(dated)


async def test_a_row_is_not_written_before_its_moment(
    connection: Connection, database_settings: DatabaseSettings, installation: Installation
) -> None:
    """What is due is there; what is due later is not when the writer is stopped."""

    class Standing(StepTime):
        """Time that does not leap beyond an hour."""

        async def wait(self, until: Any, changed: asyncio.Event) -> None:
            if until > START + timedelta(hours=1):
                reached.set()
                await changed.wait()
            else:
                await super().wait(until, changed)

    reached = asyncio.Event()
    early, late = correlation(1, minutes=5), correlation(2, minutes=90)
    writer = CorrelationWriter([late, early], database_settings, installation.schema_name, Standing())
    running = asyncio.create_task(writer.run())
    await asyncio.wait_for(reached.wait(), PATIENCE_SECONDS)
    assert rows(connection) == values([early])
    writer.stop()
    await asyncio.wait_for(running, PATIENCE_SECONDS)
    assert not writer.finished.is_set()
    assert writer.waiting == 1


async def test_another_world_in_the_same_table_is_told(
    connection: Connection, database_settings: DatabaseSettings, installation: Installation
) -> None:
    """A reference that belongs to another deposit there: the seed has to be another."""
    connection.execute("INSERT INTO pg_deposit_correlations VALUES ('dep_other', 'ref_1', 'o', 'u')")
    writer = CorrelationWriter([correlation(1, minutes=0)], database_settings, installation.schema_name, StepTime())
    with pytest.raises(TallyhookError, match=r"ref_1.*--seed"):
        await asyncio.wait_for(writer.run(), PATIENCE_SECONDS)


async def test_tables_that_are_not_there_are_told(
    database_settings: DatabaseSettings, installation: Installation
) -> None:
    """It does not wait for them for ever."""
    writer = CorrelationWriter([correlation(1, minutes=0)], database_settings, installation.schema_name, StepTime())
    with pytest.raises(TallyhookError, match="tallyhook migrate"):
        await asyncio.wait_for(writer.run(), PATIENCE_SECONDS)


async def test_a_database_that_is_away_is_waited_for(
    connection: Connection, database_url: str, installation: Installation
) -> None:
    """Nothing is lost by it: the rows are written once it answers."""
    away = Away(database_url)
    async with await asyncio.start_server(away.serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        behind = DatabaseSettings(url=SecretStr(make_conninfo(database_url, host="127.0.0.1", port=port)))
        writer = CorrelationWriter([correlation(1, minutes=0)], behind, installation.schema_name, StepTime())
        running = asyncio.create_task(writer.run())
        await asyncio.wait_for(away.refused.wait(), PATIENCE_SECONDS)
        assert rows(connection) == set()
        away.back = True
        await asyncio.wait_for(running, PATIENCE_SECONDS)
    assert rows(connection) == values([correlation(1, minutes=0)])


class Away:
    """A door to the database that cuts whoever comes until it is `back`."""

    def __init__(self, database_url: str) -> None:
        parts = conninfo_to_dict(database_url)
        self._address = (str(parts["host"]), int(str(parts["port"])))
        self.refused = asyncio.Event()
        self.back = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        if not self.back:
            self.refused.set()
            writer.close()
            return
        there_reader, there_writer = await asyncio.open_connection(*self._address)
        await asyncio.gather(self._copy(reader, there_writer), self._copy(there_reader, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()
