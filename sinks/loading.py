"""What is read under the fence before a batch is decided: by key, in as few round trips as it takes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from schemas.topics import TopicNames
from sinks import stored
from sinks.contents import DepositContent, TransactionContent, WithdrawalContent
from sinks.domain.decision import Correlation
from sinks.loaded import Known, Loaded
from sinks.plan import Position
from sinks.records import Arrival
from sinks.waiting import choose, waiting_arrival
from tallyhook.postgres import Connection, Queries

Rows = psycopg.Cursor[tuple[Any, ...]]


@dataclass(slots=True)
class Keys:
    """The keys that arrivals ask for, by table.

    Args:
        builders: withdrawals that one of the arrivals can build, in their order.
        touched: every object whose waiting events may go on.
    """

    touched: set[str] = field(default_factory=set)
    deposits: set[str] = field(default_factory=set)
    withdrawals: set[str] = field(default_factory=set)
    builders: dict[str, None] = field(default_factory=dict)
    claims: set[str] = field(default_factory=set)
    legs: set[str] = field(default_factory=set)
    reversing: set[str] = field(default_factory=set)
    transactions: set[str] = field(default_factory=set)

    def add(self, arrivals: Iterable[Arrival]) -> None:
        """Takes up what these arrivals ask for."""
        touched, deposits = self.touched, self.deposits
        for arrival in arrivals:
            headers, content = arrival.headers, arrival.content
            if headers is None:
                continue
            if isinstance(content, DepositContent):
                deposits.add(headers.subject)
                if content.flag is not None:
                    self.claims.add(content.flag.flag.claim_id)
            elif isinstance(content, WithdrawalContent):
                self._add_withdrawal(headers.subject, content)
            elif isinstance(content, TransactionContent):
                self.transactions.add(content.transaction.btxn_id)
                continue
            touched.add(headers.subject)

    def _add_withdrawal(self, object_id: str, content: WithdrawalContent) -> None:
        self.withdrawals.add(object_id)
        if content.can_build:
            self.builders[object_id] = None
        if content.keys is not None:
            self.legs.add(content.keys.leg_ref)
            self.reversing.update(content.keys.transaction_ids)


class BatchLoading:
    """Reads what a batch touches; holds no state between batches.

    Args:
        connection: in the batch's transaction, or about to begin it.
        batch: the statements of `batch.sql`.
        withdrawals: those of `withdrawals.sql`.
        names, livemode: the installation's topics and mode, for events that come back from the inbox.
    """

    def __init__(
        self, connection: Connection, batch: Queries, withdrawals: Queries, names: TopicNames, *, livemode: bool
    ) -> None:
        self._connection, self._batch, self._withdrawals = connection, batch, withdrawals
        self._names, self._livemode = names, livemode

    def begin_and_load(
        self,
        topic: str,
        arrivals: Sequence[Arrival],
        objects: Sequence[str],
        partitions: Sequence[int],
        limit: int,
        *,
        alone: bool,
    ) -> Loaded:
        """Opens the transaction, locks the positions and reads; see `BatchStatements.begin_and_load`."""
        keys = Keys()
        keys.add(arrivals)
        for wanted in (keys.touched, keys.deposits, keys.withdrawals):
            wanted.update(objects)
        ids = [arrival.headers.id for arrival in arrivals if arrival.headers is not None]
        places = {"objects": sorted(keys.touched), "partitions": list(partitions)}
        run = self._connection.execute
        with self._connection.pipeline():
            run(self._batch["begin"])
            locked = run(self._batch["lock_positions"], {"topic": topic, "partitions": list(partitions)})
            seen = run(self._batch["find_seen"], (ids,))
            owners = self._ask(self._batch, "load_correlations", keys.deposits)
            asked = self._ask_states(keys)
            # After the correlations and rows: what is written in between is seen together with the events that waited.
            parked = run(self._batch["load_parked"], {**places, "limit": limit})
            counted = self._count_waiting(keys, partitions)
            before = run(self._batch["find_quarantined"], (ids,))
            facts = self._ask_facts(keys)
        loaded = Loaded({number: Position(*rest) for number, *rest in locked.fetchall()})
        loaded.seen = {event_id: Known(*rest) for event_id, *rest in seen.fetchall()}
        loaded.correlations = {key: Correlation(order, user) for key, order, user in _rows(owners)}
        loaded.set_aside_before = {event_id for (event_id,) in before.fetchall()}
        _take_states(loaded, asked)
        _take_facts(loaded, facts)
        for *row, owner, _has_row in parked.fetchall():
            loaded.parked.append(waiting_arrival(row, self._names, livemode=self._livemode))
            if owner is not None:
                loaded.correlations.setdefault(row[4], Correlation(owner[0], owner[1]))
        self._load_waiting(loaded, keys, dict(_rows(counted)), partitions, 0 if alone else limit - len(loaded.parked))
        self._load_further(loaded, keys)
        return loaded

    def _load_waiting(
        self, loaded: Loaded, keys: Keys, counts: dict[str, int], partitions: Sequence[int], limit: int
    ) -> None:
        chosen, loaded.left = choose(keys.builders, counts, limit)
        if not chosen:
            return
        places = {"objects": chosen, "partitions": list(partitions)}
        for row in self._connection.execute(self._withdrawals["load_waiting"], places).fetchall():
            arrival = waiting_arrival(row, self._names, livemode=self._livemode)
            loaded.waiting.setdefault(row[4], []).append(arrival)

    def _load_further(self, loaded: Loaded, keys: Keys) -> None:
        """What only the events ask for which waited."""
        if not loaded.parked and not loaded.waiting:
            return
        more = Keys()
        more.add(loaded.parked)
        for arrivals in loaded.waiting.values():
            more.add(arrivals)
        more.deposits -= keys.deposits
        more.withdrawals -= keys.withdrawals
        more.claims -= keys.claims
        more.legs -= keys.legs
        more.reversing -= keys.reversing
        with self._connection.pipeline():
            asked = self._ask_states(more)
            facts = self._ask_facts(more)
        _take_states(loaded, asked)
        _take_facts(loaded, facts)

    def _ask(self, queries: Queries, name: str, keys: Iterable[str]) -> Rows | None:
        wanted = sorted(keys)
        return self._connection.execute(queries[name], (wanted,)) if wanted else None

    def _ask_states(self, keys: Keys) -> "_AskedStates":
        return _AskedStates(
            self._ask(self._batch, "load_deposits", keys.deposits),
            self._ask(self._withdrawals, "load_withdrawals", keys.withdrawals),
        )

    def _ask_facts(self, keys: Keys) -> "_AskedFacts":
        reversals = None
        if keys.legs or keys.reversing:
            wanted = {"legs": sorted(keys.legs), "transactions": sorted(keys.reversing)}
            reversals = self._connection.execute(self._withdrawals["load_reversals"], wanted)
        return _AskedFacts(
            self._ask(self._batch, "load_flags", keys.claims),
            self._ask(self._withdrawals, "load_fills", keys.legs),
            reversals,
            self._ask(self._withdrawals, "load_transactions", keys.transactions),
        )

    def _count_waiting(self, keys: Keys, partitions: Sequence[int]) -> Rows | None:
        if not keys.builders:
            return None
        places = {"objects": sorted(keys.builders), "partitions": list(partitions)}
        return self._connection.execute(self._withdrawals["count_waiting"], places)


@dataclass(frozen=True, slots=True)
class _AskedStates:
    """Rows of objects that are still on their way."""

    deposits: Rows | None
    withdrawals: Rows | None


@dataclass(frozen=True, slots=True)
class _AskedFacts:
    """Rows of facts that are still on their way."""

    flags: Rows | None
    fills: Rows | None
    reversals: Rows | None
    transactions: Rows | None


def _take_states(loaded: Loaded, asked: _AskedStates) -> None:
    loaded.deposits.update({row[0]: stored.deposit_state(row) for row in _rows(asked.deposits)})
    loaded.withdrawals.update({row[0]: stored.withdrawal_state(row) for row in _rows(asked.withdrawals)})


def _take_facts(loaded: Loaded, asked: _AskedFacts) -> None:
    loaded.flags.update({row[0]: stored.flag(row) for row in _rows(asked.flags)})
    loaded.facts.add(map(stored.fill, _rows(asked.fills)), map(stored.tombstone, _rows(asked.reversals)))
    loaded.transactions.update({row[0]: stored.transaction(row) for row in _rows(asked.transactions)})


def _rows(cursor: Rows | None) -> list[tuple[Any, ...]]:
    return [] if cursor is None else cursor.fetchall()
