"""The switch: a hand-written handler gets the first events, its rows are taken over, and everything comes again."""

import uuid
from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from schemas.headers import EventHeaders, verdict_headers
from sinks.batch import Applier
from sinks.migrations import upgrade
from sinks.records import SinkRecord
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings, Installation, SinkSettings
from tests.conformance.tables import Tables, clear, differences, make_clearable, read_tables
from tests.conformance.twins import HandlerTwin
from tests.conformance.worlds import PARTITIONS, Arrival, World, worlds
from tests.integration.operations.old_handlers import (
    EVERY_COLUMN,
    PARTIAL_FILLS_PAGE,
    effects,
    old_handler,
    take_over,
)

NO_LIMIT = SinkSettings(quarantine_limit=1000)
COMPARED = (
    *("deposits", "overpayment flags", "withdrawals", "fills", "reversals", "balance transactions", "balances"),
)
UNSURE = frozenset(
    {
        *("fee_total_minor", "total_locked_minor", "refunded_minor", "fee_recognized_minor", "settled_splits"),
        *("merchant_id", "balance_after", "status_snapshot", "closed", "close_enqueued"),
    }
)
"""What the page's tables keep as 0 where nothing is known, or do not keep."""
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""A counterexample is told as it was found: to make one shorter takes minutes."""
PATIENT = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]


@dataclass
class Switch:
    """An old handler, one that sees everything, and the installation that takes over."""

    database: DatabaseSettings
    installation: Installation
    connection: Connection
    old: HandlerTwin
    old_connection: Connection
    old_schema: str
    old_name: str
    judge: HandlerTwin
    whole: bool

    def imported(self, first: World) -> Tables:
        """The first events at the old handler, then the import; gives what the old handler had."""
        clear(self.connection, self.installation.schema_name)
        self.connection.execute(f'DELETE FROM "{self.installation.schema_name}".imported_objects')
        had = self.old.live(first)
        taken = take_over(self.database, self.installation, self.old_schema)
        assert (taken.different, taken.unfinished) == ([], [])
        return had

    def effects_of_old(self) -> list[str]:
        """Dedupe keys of what left the old handler."""
        return effects(self.old_connection, self.old_name)

    def run_on(self, world: World) -> Tables:
        """The sink gets a whole world, and is asked for its rows."""
        applier = Applier(self.connection, self.installation, NO_LIMIT)
        applier.claim(range(PARTITIONS))
        offsets: Counter[int] = Counter()
        for batch in world:
            for row in batch.correlations:
                self.connection.execute(
                    f'INSERT INTO "{self.installation.schema_name}".pg_deposit_correlations'
                    " (pg_deposit_id, merchant_reference, our_order_id, our_user_id) VALUES (%s, %s, %s, %s)"
                    " ON CONFLICT DO NOTHING",
                    (row.pg_deposit_id, row.merchant_reference, row.our_order_id, row.our_user_id),
                )
            if batch.looks_first:
                applier.apply_ready()
            records = []
            for arrival in batch.arrivals:
                records.append(_record(arrival, offsets[arrival.event.partition], applier))
                offsets[arrival.event.partition] += 1
            if records:
                assert applier.apply(records).taken == len(records)
        applier.apply_ready()
        return read_tables(self.connection, self.installation.schema_name)


@pytest.fixture(scope="module", params=[EVERY_COLUMN, PARTIAL_FILLS_PAGE], ids=["every column", "the page's columns"])
def switch(request: pytest.FixtureRequest, database_url: str) -> Iterator[Switch]:
    """Three schemas for all worlds of this module."""
    database = DatabaseSettings(url=SecretStr(database_url))
    name = f"s{uuid.uuid4().hex[:10]}"
    installation = Installation(topic_prefix=name, schema_=name)
    with ExitStack() as stack:
        upgrade(database, installation)
        connection = stack.enter_context(connect(database, "test"))
        stack.callback(connection.execute, f'DROP SCHEMA "{name}" CASCADE')
        old = stack.enter_context(old_handler(database, f"{name}_old", request.param))
        judge = stack.enter_context(old_handler(database, f"{name}_judge"))
        for one, schema in (
            (connection, name),
            (old.connection, f"{name}_old"),
            (judge.connection, f"{name}_judge"),
        ):
            one.execute("SET synchronous_commit = off")
            make_clearable(one, schema)
        yield Switch(
            database,
            installation,
            connection,
            HandlerTwin(old.connection, f"{name}_old"),
            old.connection,
            old.schema,
            f"{name}_old",
            HandlerTwin(judge.connection, f"{name}_judge"),
            request.param is EVERY_COLUMN,
        )


@settings(
    max_examples=60,
    deadline=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=PATIENT,
    print_blob=True,
)
@given(worlds(), st.integers(0, 10))
def test_nothing_is_done_twice(switch: Switch, world: World, tenths: int) -> None:
    """Whatever the old handler saw, and though all of it comes again: no effect twice, none lost, the same rows."""
    first = world[: round(len(world) * tenths / 10)]
    switch.imported(first)
    left = switch.run_on(world)
    expected = switch.judge.live((*first, *_without_correlations(world, first)))
    before, after = switch.effects_of_old(), effects(switch.connection, switch.installation.schema_name)
    assert set(before) & set(after) == set()
    assert len(after) == len(set(after))
    told = {row["dedupe_key"] for row in expected["effects in order, by object"]}
    assert {*before, *after} - told == set()
    assert told - {*before, *after} <= (set() if switch.whole else _doubtful(expected))
    unsure = set() if switch.whole else UNSURE
    assert differences(_comparable(expected, unsure), _comparable(left, unsure)) == []


def _doubtful(tables: Tables) -> set[str]:
    """Closings of orders of which a chunk was taken back: the page's tables do not tell whether they left."""
    return {f"withdrawal:{row['pg_withdrawal_id']}:close_withdrawal" for row in tables["reversals"]}


def _without_correlations(world: World, first: World) -> World:
    """The same, less the correlations that were written at first."""
    known = {row.pg_deposit_id for batch in first for row in batch.correlations}
    return tuple(
        replace(batch, correlations=tuple(row for row in batch.correlations if row.pg_deposit_id not in known))
        for batch in world
    )


def _comparable(tables: Tables, unsure: AbstractSet[str]) -> Tables:
    # A reversal's event that comes again after the switch opens its order once more: nothing knows it by its id.
    opened = {row["pg_withdrawal_id"] for row in tables["reversals"]}
    return {
        name: [
            {
                column: value
                for column, value in row.items()
                if column not in unsure and not (column == "closed" and row["pg_withdrawal_id"] in opened)
            }
            for row in tables[name]
        ]
        for name in COMPARED
    }


def _record(arrival: Arrival, offset: int, applier: Applier) -> SinkRecord:
    event = arrival.event
    headers = EventHeaders(
        id=event.event_id,
        type=event.type,
        source="/gateway",
        subject=event.object_id,
        time="2026-03-01T03:33:15.123Z",
        object_kind=event.object_kind,
        status=event.status,
        version=event.version,
        merchant="mer_1",
        sequence=event.sequence,
        livemode=event.livemode,
        received_at=datetime(2026, 3, 1, tzinfo=UTC).isoformat(),
        origin="webhook",
        key_id="reference",
    )
    added = verdict_headers("advanced", None, None, event.partition, arrival.source_offset)
    return SinkRecord(event.partition, offset, applier.epoch(event.partition), event.body, [*headers.encode(), *added])
