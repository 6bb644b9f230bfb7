"""Two schemas and two connections for the whole run: a world costs its rows and no set-up."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pydantic import SecretStr

from sinks.migrations import upgrade
from tallyhook.postgres import connect
from tallyhook.settings import DatabaseSettings, Installation
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
    upgrade(database, mine)
    upgrade(database, theirs)
    with connect(database, "sink") as one, connect(database, "reference") as other:
        # What is compared are the rows, not what a crash of the database leaves of them.
        one.execute("SET synchronous_commit = off")
        other.execute("SET synchronous_commit = off")
        make_clearable(one, mine.schema_name)
        make_clearable(other, theirs.schema_name)
        yield Twins(SinkTwin(one, mine), HandlerTwin(other, theirs.schema_name))
        for installation in (mine, theirs):
            one.execute(f'DROP SCHEMA "{installation.schema_name}" CASCADE')
