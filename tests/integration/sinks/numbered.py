"""Numbers of the gateway's sequence in every place where the keeper looks, and what it made of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from psycopg.types.json import Jsonb

from sinks.sequence_keeper import Turns
from sinks.sequence_test_traffic import TopicReader
from tallyhook.clock import SystemClock
from tallyhook.postgres import Connection, connect
from tallyhook.settings import KafkaSettings, Settings, load
from tests.integration.sinks.conftest import Road

MERCHANT = "mer_1"
RECEIVED_AT = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
PARTITIONS = 4


@dataclass
class Numbered:
    """An installation whose inbox and quarantine a test fills with numbers, without a sink that runs.

    Args:
        arrivals: the next arrival number by partition.
    """

    road: Road
    settings: Settings
    opened: list[Connection] = field(default_factory=list)
    arrivals: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    places: int = 0

    def keeper(self, owner: str) -> Turns:
        """A keeper on a connection of its own."""
        connection = connect(self.road.database, "sequences")
        self.opened.append(connection)
        reader = TopicReader(self.settings.kafka, f"{self.settings.installation.test_prefix}.events", SystemClock())
        return Turns(connection, self.settings, owner, reader)

    def arrive(self, *numbers: int, partition: int = 0, merchant: str = MERCHANT, minutes: float = 0) -> None:
        """Rows of the inbox, as one batch of the sink writes them; received so many minutes after the first moment."""
        rows = []
        for number in numbers:
            arrival = self.arrivals[partition]
            self.arrivals[partition] += 1
            received = RECEIVED_AT + timedelta(minutes=minutes, seconds=arrival / 1000)
            rows.append(
                (f"evt-{merchant}-{number}-{partition}-{arrival}", merchant, number, partition, arrival, received)
            )
        with self.road.connection.transaction(), self.road.connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO pg_webhook_inbox (event_id, event_type, event_raw, received_at, processed_at, object_id,"
                " object_kind, version, merchant_id, sequence, partition, arrival_seq, source_partition, source_offset,"
                " verdict, key_id, origin)"
                " SELECT %s, 'deposit.open', '{}', r, r, 'dep', 'deposit_order', 1, %s, %s, %s, %s, 0, 0,"
                " 'advanced', 'k1', 'webhook' FROM (SELECT %s::timestamptz AS r) AS t",
                rows,
            )

    def set_aside(
        self,
        number: int | str,
        *,
        merchant: str = MERCHANT,
        reason: str = "money_rule",
        connection: Connection | None = None,
    ) -> None:
        """A quarantined event."""
        self.places += 1
        headers = {"ce_merchant": merchant, "ce_sequence": str(number), "ce_id": f"evt-{self.places}"}
        (connection or self.road.connection).execute(
            "INSERT INTO quarantined_events (stage, reason, detail, raw, headers, source_topic, source_partition,"
            " source_offset) VALUES ('sinks', %s, 'set aside by the test', '{}', %s, 'events', 0, %s)",
            (reason, Jsonb(headers), self.places),
        )

    def gaps(self, merchant: str = MERCHANT) -> list[tuple[int, int]]:
        """The gaps in order, whatever their state."""
        statement = (
            "SELECT first_sequence, last_sequence FROM sequence_gaps WHERE merchant_id = %s ORDER BY first_sequence"
        )
        return self.road.rows(statement, (merchant,))

    def head(self, merchant: str = MERCHANT) -> tuple[int, int] | None:
        """The first and the highest number."""
        rows = self.road.rows("SELECT first_seen, highest_seen FROM sequence_heads WHERE merchant_id = %s", (merchant,))
        return rows[0] if rows else None


def numbered(road: Road, kafka: KafkaSettings) -> Numbered:
    """The test's installation, with tables and without topics."""
    own = road.installation.model_copy(update={"partitions": PARTITIONS})
    return Numbered(road, replace(load(), installation=own, kafka=kafka, database=road.database))


def settle(keeper: Turns) -> None:
    """Turns until nothing more waits."""
    keeper.fetch()
    while keeper.turn():
        keeper.fetch()


def missing(first: int, numbers: Sequence[int]) -> list[tuple[int, int]]:
    """The gaps, computed from all numbers at once."""
    found, edge = [], first
    for number in sorted({number for number in numbers if number >= first}):
        if number > edge + 1:
            found.append((edge + 1, number - 1))
        edge = max(edge, number)
    return found
