"""The object by object part of an audit, on a schema without topics."""

from datetime import UTC, datetime, timedelta

from tallyhook.operations.audit.compare import compare
from tallyhook.operations.audit.compare_withdrawals import check_crossings
from tallyhook.operations.audit.findings import Checks
from tallyhook.operations.audit.ledger import check_balances
from tallyhook.operations.audit.numbers import Kept
from tallyhook.operations.audit.snapshot import Snapshot
from tallyhook.operations.audit.stored_objects import stored_objects
from tallyhook.postgres import Connection
from tallyhook.settings import (
    DatabaseSettings,
    IngressSettings,
    Installation,
    KafkaSettings,
    ProcessSettings,
    RelaySettings,
    Settings,
    SinkSettings,
    StreamSettings,
)

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def nothing_pruned() -> Kept:
    """Inbox and outbox are whole."""
    return Kept(LONG_AGO, LONG_AGO)


def inbox_pruned(partitions: int) -> Kept:
    """Older events may be gone from each partition, and older rows from the outbox."""
    later = datetime.now(UTC) + timedelta(days=40)
    numbers = dict.fromkeys(range(partitions), 1)
    return Kept(later, later, numbers, numbers)


def settings_of(installation: Installation, kafka: KafkaSettings, database: DatabaseSettings) -> Settings:
    """The settings of an installation, the defaults otherwise."""
    return Settings(
        installation=installation,
        kafka=kafka,
        database=database,
        process=ProcessSettings(),
        ingress=IngressSettings(),
        stream=StreamSettings(),
        sink=SinkSettings(),
        relay=RelaySettings(),
    )


def audit_objects(connection: Connection, installation: Installation, kept: Kept) -> Checks:
    """The checks that need no topic, over every object, in one transaction."""
    settings = settings_of(installation, KafkaSettings(), DatabaseSettings())
    checks = Checks()
    with connection.transaction():
        snapshot = Snapshot(connection, settings)
        for stored in stored_objects(snapshot):
            compare(stored, kept, checks)
        check_crossings(snapshot, checks["chunks"])
        check_balances(snapshot, checks["ledger"])
    return checks


def told(checks: Checks) -> list[str]:
    """Every counterexample that was kept, with the name of its check."""
    return [f"{name}: {example.text}" for name, check in checks.items() for example in check.examples]
