"""Faults planted into the sink while a test runs: an oracle that cannot tell them from the sink proves nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from psycopg import sql

from schemas.events import DEPOSIT_KIND, DepositEvent
from sinks.domain.decide import DEPOSITS, AnyHandler, handler_for
from sinks.domain.decision import DepositDecision, DepositState, Refusal
from tallyhook.postgres import Queries

Decided = DepositDecision | Refusal
Decide = Callable[[DepositState, DepositEvent], Decided]


@contextmanager
def equal_version_advances() -> Iterator[None]:
    """The guard says `<=` where it must say `<`, in the decision and in the statement that writes the row."""

    def loosened(decide: Decide, state: DepositState, event: DepositEvent) -> Decided:
        version = event.data.object.version
        return decide(replace(state, version=version - 1) if state.version == version else state, event)

    guard = ("pg_version < EXCLUDED.pg_version", "pg_version <= EXCLUDED.pg_version")
    with _deciding(loosened), changed_statement("write_deposits", *guard):
        yield


@contextmanager
def debit_from_the_snapshot() -> Iterator[None]:
    """A reversal takes back what its own snapshot says, not what was credited."""

    def snapshot_debit(decide: Decide, state: DepositState, event: DepositEvent) -> Decided:
        decision = decide(state, event)
        amount = event.data.object.amount_received_minor or 0
        if isinstance(decision, Refusal):
            return decision
        entries = tuple(
            replace(entry, amount_minor=-amount) if entry.amount_minor < 0 else entry for entry in decision.entries
        )
        return replace(decision, entries=entries)

    with _deciding(snapshot_debit):
        yield


@contextmanager
def late_flag_is_lost() -> Iterator[None]:
    """The overpayment flag of a stale event is thrown away with the rest of it."""

    def forgetful(decide: Decide, state: DepositState, event: DepositEvent) -> Decided:
        decision = decide(state, event)
        if isinstance(decision, Refusal) or decision.verdict != "late":
            return decision
        return replace(decision, flag=None)

    with _deciding(forgetful):
        yield


@contextmanager
def waiting_events_come_last() -> Iterator[None]:
    """Parked events are applied from the last to the first."""

    with changed_statement("load_parked", "ORDER BY arrival_seq", "ORDER BY arrival_seq DESC"):
        yield


MUTATIONS = (equal_version_advances, debit_from_the_snapshot, late_flag_is_lost, waiting_events_come_last)


@contextmanager
def changed_statement(name: str, text: str, other: str) -> Iterator[None]:
    """Puts another text into one of the statements of a batch; it must be there just once."""

    class ChangedQueries(Queries):
        def __getitem__(self, asked: str) -> sql.Composed:
            statement = super().__getitem__(asked)
            if asked != name:
                return statement
            whole = statement.as_string()
            assert whole.count(text) == 1
            return sql.Composed([sql.SQL(whole.replace(text, other))])

    with patch("sinks.transaction.Queries", ChangedQueries):
        yield


@contextmanager
def _deciding(changed: Callable[[Decide, DepositState, DepositEvent], Decided]) -> Iterator[None]:
    """Puts a changed decision in the place of the sink's own."""
    mutated = replace(DEPOSITS, decide=lambda state, event: changed(DEPOSITS.decide, state, event))

    def chosen(object_kind: str) -> AnyHandler | None:
        return mutated if object_kind == DEPOSIT_KIND else handler_for(object_kind)

    with patch("sinks.records.handler_for", chosen):
        yield
