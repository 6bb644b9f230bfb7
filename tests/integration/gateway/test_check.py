"""The check at the end: it waits until the pipeline has judged every accepted delivery, and then compares."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from psycopg import sql
from pydantic import SecretStr

from sinks.migrations import upgrade
from tallyhook.clock import SystemClock
from tallyhook.errors import TallyhookError
from tallyhook.gateway.check import Check
from tallyhook.gateway.world.model import World
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings, Installation
from tests.unit.gateway_delivery.stepping import NOTHING_EXPECTED, event, world_of

JUDGED = (
    "INSERT INTO quarantined_events (stage, reason, detail, event_id, raw, headers, source_topic, source_partition,"
    " source_offset) SELECT 'sinks', 'money_rule', '', 'evt_1', '', '{}', 'events', 0, count(*)"
    " FROM quarantined_events"
)
"""One more delivery that the pipeline has decided on."""


@pytest.fixture
def connection(database_settings: DatabaseSettings, installation: Installation) -> Iterator[Connection]:
    """To tables of the test's own."""
    upgrade(database_settings, installation)
    with connect(database_settings, "test") as opened:
        opened.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(installation.schema_name)))
        yield opened


def check_of(
    world: World, database: DatabaseSettings, installation: Installation, *, patience_seconds: float = 30.0
) -> Check:
    """One that nobody stops."""
    return Check(
        world,
        database,
        installation.schema_name,
        patience_seconds=patience_seconds,
        clock=SystemClock(),
        stopped=lambda: False,
    )


def test_it_waits_for_what_was_accepted_and_counts_from_its_beginning(
    connection: Connection, database_settings: DatabaseSettings, installation: Installation
) -> None:
    """What was judged before does not count; the second delivery ends the wait."""
    connection.execute(JUDGED)
    check = check_of(world_of([]), database_settings, installation)
    check.begin()
    connection.execute(JUDGED)
    found: list[list[str]] = []
    waiting = threading.Thread(target=lambda: found.append(check.differences(2)), daemon=True)
    waiting.start()
    waiting.join(1.0)
    assert waiting.is_alive()
    connection.execute(JUDGED)
    waiting.join(20.0)
    assert found == [[]]


def test_a_pipeline_that_does_not_come_to_an_end_is_told(
    connection: Connection, database_settings: DatabaseSettings, installation: Installation
) -> None:
    """With how far it came."""
    check = check_of(world_of([]), database_settings, installation, patience_seconds=0.5)
    check.begin()
    connection.execute(JUDGED)
    assert check.differences(3) == ["the pipeline has judged 1 of 3 accepted deliveries"]


def test_differences_are_told(
    connection: Connection, database_settings: DatabaseSettings, installation: Installation
) -> None:
    """An event that must be in the inbox and is not."""
    missing = replace(NOTHING_EXPECTED, processed=frozenset({"evt_gone"}))
    world = replace(world_of([event(1)]), expected=missing)
    check = check_of(world, database_settings, installation, patience_seconds=0.5)
    check.begin()
    (sentence,) = check.differences(0)
    assert "evt_gone" in sentence


def test_what_was_withheld_and_fetched_since_is_right_too(
    connection: Connection, database_settings: DatabaseSettings, installation: Installation
) -> None:
    """Where events were withheld, the end that has them is as good; where none were, there is one end alone."""
    other = replace(NOTHING_EXPECTED, processed=frozenset({"evt_gone"}))
    for withheld in (True, False):
        world = replace(world_of([event(1, withheld=withheld)]), expected=other)
        check = check_of(world, database_settings, installation, patience_seconds=0.5)
        check.begin()
        assert (check.differences(0) == []) == withheld


def test_a_stop_ends_it(database_settings: DatabaseSettings, installation: Installation) -> None:
    """At once, and not as a success."""
    check = Check(
        world_of([]),
        database_settings,
        installation.schema_name,
        patience_seconds=600.0,
        clock=SystemClock(),
        stopped=lambda: True,
    )
    assert check.differences(1) == ["the check was stopped before it began"]


def test_a_database_that_does_not_answer_is_told(installation: Installation) -> None:
    """Within the patience."""
    nowhere = DatabaseSettings(url=SecretStr("postgresql://u@127.0.0.1:1/d"), connect_timeout_seconds=1)
    (sentence,) = check_of(world_of([]), nowhere, installation, patience_seconds=0.5).differences(0)
    assert sentence.startswith("the check could not read the database:")


def test_tables_that_are_not_there_are_told(database_settings: DatabaseSettings, installation: Installation) -> None:
    """Before anything is sent, with what to do."""
    with pytest.raises(TallyhookError, match="tallyhook migrate"):
        check_of(world_of([]), database_settings, installation).begin()
