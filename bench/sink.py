"""The sink's throughput: its batches against the hand-written handler, on the same events, in the same run.

Usage: python -m bench.sink DATABASE_URL [EVENTS]; `tallyhook bench sink` does the same.
"""

import statistics
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from psycopg import sql
from pydantic import SecretStr

from bench.events import BenchEvent, Correlation, Workload, workload
from sinks.batch import Applier
from sinks.migrations import upgrade
from sinks.records import SinkRecord
from tallyhook.errors import TallyhookError, UsageError
from tallyhook.postgres import Connection, connect
from tallyhook.settings import PROFILES, DatabaseSettings, Installation

PARTITIONS = 8
ROUNDS = 5
HISTORY_EVENTS = 20_000
HISTORY_BATCH_ROWS = 2_000
REFERENCE_SHARE = 5
REFERENCE_EVENTS_MIN = 3_000
SEED = 20_260_301
TABLES = ("pg_webhook_inbox", "pg_deposit_correlations", "pg_deposits", "pg_user_balances", "pg_user_balance_entries")


@dataclass(slots=True)
class Measured:
    """What one contender did.

    Args:
        rounds: events a second, one figure a round.
        events: in all rounds together.
        seconds: by step, in all rounds together; empty where nothing is known of the steps.
    """

    name: str
    rounds: list[float] = field(default_factory=list)
    events: int = 0
    seconds: Counter[str] = field(default_factory=Counter)

    @property
    def median(self) -> float:
        """Events a second."""
        return statistics.median(self.rounds)


@dataclass(frozen=True, slots=True)
class SinkBenchResult:
    """The sink by batch size, smallest first, and the reference handler."""

    sinks: tuple[Measured, ...]
    reference: Measured

    @property
    def ratio(self) -> float:
        """How many times the reference the default profile's batches do, by the medians."""
        return self.sinks[0].median / self.reference.median


class _Contender(Protocol):
    measured: Measured

    def take(self, deliveries: Sequence[BenchEvent]) -> None: ...


class _Sink:
    """The sink's own batch path: decoding, deciding, one transaction a batch."""

    def __init__(self, connection: Connection, installation: Installation, batch_rows: int) -> None:
        self.measured = Measured(f"sink, {batch_rows:,} a batch")
        self._applier = Applier(connection, installation)
        self._applier.claim(range(PARTITIONS))
        self._batch_rows = batch_rows

    def take(self, deliveries: Sequence[BenchEvent]) -> None:
        """Applies all of them; making records of them is the Kafka client's work and is not measured."""
        now = datetime.now(UTC)
        epochs = [self._applier.epoch(partition) for partition in range(PARTITIONS)]
        records = [
            SinkRecord(event.partition, event.arrival, epochs[event.partition], event.body, event.headers(now))
            for event in deliveries
        ]
        seconds: Counter[str] = Counter()
        began = time.perf_counter()
        for start in range(0, len(records), self._batch_rows):
            batch = records[start : start + self._batch_rows]
            result = self._applier.apply(batch)
            if result.taken != len(batch) or result.quarantined:
                raise TallyhookError(f"{result.taken} of {len(batch)} events taken, quarantined: {result.quarantined}")
            seconds.update(result.seconds)
        self.measured.rounds.append(len(records) / (time.perf_counter() - began))
        self.measured.events += len(records)
        self.measured.seconds.update(seconds)


class _Reference:
    """The handler that the gateway's pages show: one transaction an event."""

    def __init__(self, connection: Connection, installation: Installation) -> None:
        _make_tests_importable()
        from tests.reference.handler import Delivery, Handler

        self.measured = Measured("reference, one by one")
        self._handler, self._delivery = Handler(connection, installation.schema_name), Delivery

    def take(self, deliveries: Sequence[BenchEvent]) -> None:
        """Handles all of them."""
        now = datetime.now(UTC)
        known = [
            self._delivery(event.event_id, event.object_id, event.partition, event.partition, event.arrival, now)
            for event in deliveries
        ]
        began = time.perf_counter()
        for event, delivery in zip(deliveries, known, strict=True):
            if self._handler.deliver(event.body, delivery) in ("parked", "quarantined"):
                raise TallyhookError(f"{event.event_id} was set aside by the reference handler")
        self.measured.rounds.append(len(known) / (time.perf_counter() - began))
        self.measured.events += len(known)


def run(
    database: DatabaseSettings, events: int, report: Callable[[str], None], rounds: int = ROUNDS
) -> SinkBenchResult:
    """Measures the sink with each profile's batch size and the reference, in turns, each on a schema of its own.

    All three begin with the same history, loaded and analysed, and go on with the same deliveries; the reference takes
    fewer of them. Raises TallyhookError when an event is not applied, UsageError outside of a checkout.

    Args:
        database: where the schemas are made and removed again.
        events: how many the sink takes with each batch size, in all rounds together; 20,000 or more tell something.
        report: takes a line of text as the run goes on, the table at the end.
        rounds: how often each is measured.
    """
    share = max(events // rounds // REFERENCE_SHARE, -(-REFERENCE_EVENTS_MIN // rounds))
    each = max(events // rounds, share)
    work = workload(SEED, HISTORY_EVENTS + rounds * each, partitions=PARTITIONS)
    history, live = work.deliveries[:HISTORY_EVENTS], work.deliveries[HISTORY_EVENTS:]
    with _contenders(database, work, history, report) as (sinks, reference):
        for number in range(rounds):
            for sink in sinks:
                sink.take(live[number * each : (number + 1) * each])
            reference.take(live[number * share : (number + 1) * share])
            contenders: list[_Contender] = [*sinks, reference]
            rates = ", ".join(f"{one.measured.rounds[-1]:,.0f}" for one in contenders)
            report(f"round {number + 1} of {rounds}, events/s in the order of the table: {rates}")
        result = SinkBenchResult(tuple(sink.measured for sink in sinks), reference.measured)
    for line in _table(result, work):
        report(line)
    return result


def _table(result: SinkBenchResult, work: Workload) -> Iterator[str]:
    yield f"{'events/s':<26}{'min':>9}{'median':>9}{'max':>9}{'times':>8}{'events':>9}"
    for measured in (*result.sinks, result.reference):
        times = measured.median / result.reference.median
        yield (
            f"{measured.name:<26}{min(measured.rounds):>9,.0f}{measured.median:>9,.0f}{max(measured.rounds):>9,.0f}"
            f"{times:>8.1f}{measured.events:>9,}"
        )
    for measured in result.sinks:
        steps = ", ".join(f"{step} {1e6 * spent / measured.events:.1f}" for step, spent in measured.seconds.items())
        yield f"{measured.name}, us an event: {steps}"
    size = statistics.mean(len(event.body) for event in work.deliveries)
    distinct = len({event.event_id for event in work.deliveries})
    repeated = 1 - distinct / len(work.deliveries)
    yield f"one connection each, {HISTORY_EVENTS:,} deliveries of history; {size:,.0f} bytes an event,"
    yield f"{repeated:.0%} of the deliveries repeated, {_late_share(work.deliveries):.0%} late"


def _late_share(deliveries: Sequence[BenchEvent]) -> float:
    newest: dict[str, int] = {}
    seen: set[str] = set()
    late = 0
    for event in deliveries:
        late += event.event_id not in seen and event.version < newest.get(event.object_id, 0)
        seen.add(event.event_id)
        newest[event.object_id] = max(event.version, newest.get(event.object_id, 0))
    return late / len(deliveries)


@contextmanager
def _contenders(
    database: DatabaseSettings, work: Workload, history: Sequence[BenchEvent], report: Callable[[str], None]
) -> Iterator[tuple[list[_Sink], _Reference]]:
    """The sink once for each profile and the reference, each with its connection and its schema with the history."""
    sizes = sorted({profile.batch_rows for profile in PROFILES.values()})
    run_name = f"bench_{uuid.uuid4().hex[:8]}"
    places = [Installation(topic_prefix=f"{run_name}_{n}", schema_=f"{run_name}_{n}") for n in range(len(sizes) + 1)]
    opened: list[Connection] = []
    try:
        for place in places:
            upgrade(database, place)
            _load(database, place, work.correlations, history)
            report(f"{len(history):,} deliveries of history in schema {place.schema_name}")
            opened.append(connect(database, "bench"))
        sinks = [_Sink(connection, place, size) for connection, place, size in zip(opened, places, sizes, strict=False)]
        yield sinks, _Reference(opened[-1], places[-1])
    finally:
        for connection in opened:
            connection.close()
        with connect(database, "bench") as connection:
            for place in places:
                connection.execute(
                    sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(place.schema_name))
                )


def _load(
    database: DatabaseSettings,
    installation: Installation,
    correlations: Sequence[Correlation],
    history: Sequence[BenchEvent],
) -> None:
    """Fills a schema with what came before the run, through the sink itself, and lets the planner see it."""
    schema = installation.schema_name
    with connect(database, "bench") as connection:
        columns = sql.SQL(", ").join(map(sql.Identifier, Correlation.__dataclass_fields__))
        target = sql.Identifier(schema, "pg_deposit_correlations")
        with (
            connection.cursor() as cursor,
            cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(target, columns)) as copy,
        ):
            for row in correlations:
                copy.write_row((row.pg_deposit_id, row.merchant_reference, row.our_order_id, row.our_user_id))
        _Sink(connection, installation, HISTORY_BATCH_ROWS).take(history)
        for table in TABLES:
            connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(schema, table)))


def _make_tests_importable() -> None:
    """The reference handler judges the sink, so it stands with the tests, and those are not installed."""
    root = Path(__file__).resolve().parents[1]
    if not (root / "tests" / "reference" / "handler.py").is_file():
        raise UsageError("the sink's benchmark runs from a checkout: tests/reference is not here")
    if str(root) not in sys.path:
        sys.path.append(str(root))


if __name__ == "__main__":
    run(DatabaseSettings(url=SecretStr(sys.argv[1])), int(sys.argv[2]) if len(sys.argv) > 2 else 20_000, print)
