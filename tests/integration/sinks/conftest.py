"""A migrated schema for each test, appliers on it, and rows to look at."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
import pytest
from psycopg import sql

from sinks.batch import PARKED_ROWS_MAX, Applier
from sinks.migrations import upgrade
from sinks.plan import BatchResult
from sinks.records import SinkRecord
from tallyhook.clock import Clock
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings, SinkSettings
from tests.integration.sinks.deliveries import Delivery
from tests.integration.sinks.running import Running, running

if TYPE_CHECKING:
    from tests.integration.sinks.numbered import Numbered

NO_LIMIT = SinkSettings(quarantine_limit=1000)


@dataclass
class Road:
    """An installation's schema with a connection to look at it, and the appliers of the test."""

    database: DatabaseSettings
    installation: Installation
    connection: Connection
    opened: list[Connection] = field(default_factory=list)
    clock: Clock | None = None

    def applier(
        self, *partitions: int, settings: SinkSettings = NO_LIMIT, claimed: bool = True, **options: int
    ) -> Applier:
        """An applier on a connection of its own that has claimed the partitions."""
        connection = connect(self.database, "sink")
        self.opened.append(connection)
        applier = Applier(
            connection,
            self.installation,
            settings,
            parked_rows_max=options.get("parked_rows_max", PARKED_ROWS_MAX),
            clock=self.clock,
        )
        if claimed:
            applier.claim(partitions or (0,))
        return applier

    def correlate(self, *object_ids: str, user: str | None = None) -> None:
        """Writes correlations: order `ord-<id>`, user `usr-<id>` unless given."""
        for object_id in object_ids:
            self.execute(
                "INSERT INTO pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)"
                " VALUES (%s, %s, %s, %s)",
                (object_id, f"ref-{object_id}", f"ord-{object_id}", user or f"usr-{object_id}"),
            )

    def execute(self, statement: LiteralString | bytes, parameters: Any = ()) -> "psycopg.Cursor[Any]":
        """Runs a statement with the schema as search path."""
        return self.connection.execute(statement, parameters)

    def rows(self, statement: LiteralString | bytes, parameters: Any = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        return self.execute(statement, parameters).fetchall()

    def one(self, statement: LiteralString | bytes, parameters: Any = ()) -> Any:
        """The only value of a statement."""
        ((value,),) = self.rows(statement, parameters)
        return value


@dataclass
class Feed:
    """Numbers deliveries as a partition of `state-changes` does and applies them."""

    applier: Applier
    partition: int = 0
    next_offset: int = 0
    next_source: int = 0

    def records(self, *deliveries: Delivery, replayed_from: int | None = None) -> list[SinkRecord]:
        """Records with the next offsets; with `replayed_from`, the same sources as before from there on."""
        made = []
        for number, delivery in enumerate(deliveries):
            if replayed_from is None:
                source, self.next_source = self.next_source, self.next_source + 1
            else:
                source = replayed_from + number
            headers = delivery.headers(self.partition, source)
            epoch = self.applier.epoch(self.partition)
            made.append(SinkRecord(self.partition, self.next_offset, epoch, delivery.body, headers))
            self.next_offset += 1
        return made

    def apply(self, *deliveries: Delivery, replayed_from: int | None = None) -> BatchResult:
        """Applies the deliveries as one batch."""
        return self.applier.apply(self.records(*deliveries, replayed_from=replayed_from))


MakeFeed = Callable[..., Feed]


@contextmanager
def _road(database: DatabaseSettings, installation: Installation) -> Iterator[Road]:
    upgrade(database, installation)
    connection = connect(database, "test")
    connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(installation.schema_name)))
    made = Road(database, installation, connection)
    yield made
    for opened in (*made.opened, connection):
        opened.close()


@pytest.fixture
def road(database_settings: DatabaseSettings, installation: Installation) -> Iterator[Road]:
    """The schema of this test."""
    with _road(database_settings, installation) as made:
        yield made


@pytest.fixture
def twin(database_settings: DatabaseSettings, installation: Installation) -> Iterator[Road]:
    """A second schema, to do there in another way what was done in the first."""
    name = f"{installation.schema_name}_twin"
    with _road(database_settings, Installation(topic_prefix=name, schema_=name)) as made:
        yield made
        made.connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


@pytest.fixture
def stage(
    road: Road,
    installation: Installation,
    kafka_settings: KafkaSettings,
    database_settings: DatabaseSettings,
    tmp_path: Path,
) -> Iterator[Running]:
    """Topics and workers on the test's schema."""
    with running(installation, kafka_settings, database_settings, tmp_path) as made:
        yield made


@pytest.fixture
def place(road: Road, kafka_settings: KafkaSettings) -> "Iterator[Numbered]":
    """Tables whose inbox and quarantine the test fills with numbers; keepers are closed at the end."""
    from tests.integration.sinks.numbered import numbered

    made = numbered(road, kafka_settings)
    yield made
    for connection in made.opened:
        connection.close()
