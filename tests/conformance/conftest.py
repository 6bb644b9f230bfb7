"""Two schemas and two connections for the whole run: a world costs its rows and no set-up."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pydantic import SecretStr

from sinks.migrations import upgrade
from tallyhook.postgres import connect
from tallyhook.settings import DatabaseSettings, Installation
from tests.conformance.payouts import Payouts
from tests.conformance.tables import make_clearable
from tests.conformance.twins import HandlerTwin, SinkTwin


@dataclass(frozen=True, slots=True)
class Twins:
    """Who live the same worlds."""

    sink: SinkTwin
    handler: HandlerTwin


@pytest.fixture(scope="module")
def twins(database_url: str) -> Iterator[Twins]:
    """The sink and the handler, each on a schema of its own that is dropped afterwards."""
    database = DatabaseSettings(url=SecretStr(database_url))
    name = f"o{uuid.uuid4().hex[:10]}"
    mine, theirs = (Installation(topic_prefix=f"{name}{side}", schema_=f"{name}{side}") for side in "sh")
    try:
        for installation in (mine, theirs):
            upgrade(database, installation)
        with connect(database, "sink") as one, connect(database, "reference") as other:
            for connection, installation in ((one, mine), (other, theirs)):
                # What is compared are the rows, not what a crash of the database leaves of them.
                connection.execute("SET synchronous_commit = off")
                make_clearable(connection, installation.schema_name)
            yield Twins(SinkTwin(one, mine), HandlerTwin(other, theirs.schema_name))
    finally:
        # By a connection of its own: a test that was cut off may leave the others in the middle of something.
        with connect(database, "cleanup") as connection:
            connection.execute("SET lock_timeout = '5s'")
            for installation in (mine, theirs):
                connection.execute(f'DROP SCHEMA IF EXISTS "{installation.schema_name}" CASCADE')


@pytest.fixture
def payouts(database_settings: DatabaseSettings, installation: Installation) -> Iterator[Payouts]:
    """A merchant on a schema of its own."""
    upgrade(database_settings, installation)
    with connect(database_settings, "reference") as connection:
        yield Payouts(connection, installation.schema_name)
