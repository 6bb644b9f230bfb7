"""Random worlds: whatever the sink makes of them, the audit finds nothing, also where something was pruned since."""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from sinks.migrations import upgrade
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings, Installation
from tests.conformance.histories import Noun
from tests.conformance.mutations import MUTATIONS
from tests.conformance.tables import make_clearable
from tests.conformance.twins import SinkTwin
from tests.conformance.withdrawal_mutations import WITHDRAWAL_MUTATIONS
from tests.conformance.worlds import PARTITIONS, World, worlds
from tests.integration.audit.importing import take_over
from tests.integration.audit.objects import audit_objects, inbox_pruned, nothing_pruned, told

EXAMPLES = 250
PLAIN = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
pytestmark = pytest.mark.timeout(240)


@dataclass(frozen=True)
class Lived:
    """A schema in which the sink lives worlds."""

    connection: Connection
    installation: Installation
    sink: SinkTwin


@pytest.fixture(scope="module")
def lived(database_url: str) -> Iterator[Lived]:
    """One schema for all worlds; it is dropped afterwards."""
    database = DatabaseSettings(url=SecretStr(database_url))
    name = f"a{uuid.uuid4().hex[:10]}"
    installation = Installation(topic_prefix=name, schema_=name)
    upgrade(database, installation)
    with connect(database, "sink") as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute(f'SET search_path TO "{name}"'.encode())
        make_clearable(connection, name)
        yield Lived(connection, installation, SinkTwin(connection, installation))
        connection.execute(f'DROP SCHEMA "{name}" CASCADE'.encode())


def test_a_whole_world_is_clean(lived: Lived) -> None:
    """Every verdict, row, chunk, reversal, transaction, entry and effect is what the audit recomputes."""
    looked: Counter[str] = Counter()

    @PLAIN
    @given(worlds(), st.sampled_from((1, 2, 5000)))
    def live(world: World, parked_rows_max: int) -> None:
        lived.sink.live(world, parked_rows_max)
        checks = audit_objects(lived.connection, lived.installation, nothing_pruned())
        assert told(checks) == []
        looked.update({name: check.looked_at for name, check in checks.items()})

    live()
    compared = ("aggregates", "chunks", "flags", "ledger", "outbox", "transactions", "verdicts")
    assert [name for name in compared if looked[name] == 0] == []


class _Told(BaseException):
    """A counterexample of the audit's. Hypothesis would take an Exception for a failure to be told."""


@pytest.mark.parametrize(
    ("noun", "mutation"),
    [*(("deposit", one) for one in MUTATIONS), *(("withdrawal", one) for one in WITHDRAWAL_MUTATIONS)],
)
def test_a_fault_of_the_sink_is_found(
    lived: Lived, noun: Noun, mutation: Callable[[], AbstractContextManager[None]]
) -> None:
    """Each fault that the oracle is held to is red in the audit, too, though this knows no other handler."""

    @settings(PLAIN, max_examples=1000)
    @given(worlds(objects=(1,), nouns=(noun,)))
    def live(world: World) -> None:
        lived.sink.live(world)
        if told(audit_objects(lived.connection, lived.installation, nothing_pruned())):
            raise _Told

    with mutation(), pytest.raises(_Told):
        live()


def test_a_pruned_world_is_clean(lived: Lived) -> None:
    """The processed events below some arrival number are gone, and the older outbox rows: nothing is guessed."""
    left_out: Counter[str] = Counter()

    @PLAIN
    @given(worlds(), st.integers(1, 12), st.integers(0, 12))
    def live(world: World, first_arrival: int, first_seq: int) -> None:
        lived.sink.live(world)
        lived.connection.execute(
            "DELETE FROM pg_webhook_inbox WHERE processed_at IS NOT NULL AND arrival_seq < %s", (first_arrival,)
        )
        lived.connection.execute("DELETE FROM pg_outbox WHERE seq < %s", (first_seq,))
        checks = audit_objects(lived.connection, lived.installation, inbox_pruned(PARTITIONS))
        assert told(checks) == []
        left_out.update({name: sum(check.left_out.values()) for name, check in checks.items()})

    live()
    doubted = ("aggregates", "chunks", "ledger", "outbox", "transactions")
    assert [name for name in doubted if left_out[name] == 0] == []


def test_an_imported_world_is_clean(lived: Lived) -> None:
    """What the first batches left is taken over as rows; then all of the events come again, and the others."""
    begun: Counter[str] = Counter()

    @PLAIN
    @given(worlds(), st.integers(0, 6))
    def live(world: World, batches: int) -> None:
        lived.connection.execute("DELETE FROM imported_objects")
        lived.sink.live(world[:batches])
        take_over(lived.connection)
        begun.update(
            dict(lived.connection.execute("SELECT kind, count(*) FROM imported_objects GROUP BY 1").fetchall())
        )
        lived.sink.go_on((*(replace(batch, correlations=()) for batch in world[:batches]), *world[batches:]))
        checks = audit_objects(lived.connection, lived.installation, nothing_pruned())
        assert told(checks) == []

    live()
    kinds = ("deposit", "overpayment_flag", "withdrawal", "fill", "reversal", "transaction", "balance")
    assert [kind for kind in kinds if begun[kind] == 0] == []
    lived.connection.execute("DELETE FROM imported_objects")
