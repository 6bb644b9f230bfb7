"""The statements of one batch's transaction: what is read under the fence, and what is written before the commit."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from schemas.events import Overpayment
from schemas.headers import EventHeaders
from schemas.topics import TopicNames
from sinks import copying, quarantine
from sinks.domain.decision import Correlation, Credit, DepositState, FlagDraft
from sinks.errors import CountDiffers, LedgerBroken
from sinks.overlay import Known, Loaded
from sinks.plan import Plan, Position
from sinks.records import Arrival, Source, read_body
from sinks.rows import deposit_row, entry_row, flag_row
from tallyhook.clock import Clock
from tallyhook.postgres import Connection, Queries

_encode = msgspec.json.Encoder().encode


class BatchStatements:
    """Reads and writes for one batch; holds no state between batches.

    Args:
        connection: autocommit; used for nothing else while a batch is open.
        schema: the installation's schema.
        names: the installation's topics.
        livemode: the mode of the installation, for events that come back from the inbox.
        channel: where the relay listens.
    """

    def __init__(
        self, connection: Connection, schema: str, names: TopicNames, *, livemode: bool, channel: str, clock: Clock
    ) -> None:
        self.connection, self._names, self._livemode, self._channel = connection, names, livemode, channel
        self._clock = clock
        self._queries = Queries("sinks", "sql/batch.sql", schema)
        self._quarantine = Queries("sinks", "sql/quarantine.sql", schema)
        # Each look-up is by key. A plan that was prepared while the tables were small would scan them for ever.
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET jit = off")
        # A worker that is frozen between two statements must not hold users' rows for long.
        connection.execute("SET idle_in_transaction_session_timeout = '60s'")

    def begin_and_load(
        self, topic: str, arrivals: Sequence[Arrival], objects: Sequence[str], partitions: Sequence[int], limit: int
    ) -> Loaded:
        """Opens the transaction, locks the positions and reads what the batch touches, in one or two round trips.

        Args:
            objects: further objects whose parked events are wanted, beside those of the arrivals.
            limit: most parked events to be read.
        """
        touched = sorted({a.headers.subject for a in arrivals if a.headers is not None} | set(objects))
        deposits = sorted({a.headers.subject for a in arrivals if a.headers and a.handler is not None} | set(objects))
        ids = [a.headers.id for a in arrivals if a.headers is not None]
        claims = sorted({a.flag.flag.claim_id for a in arrivals if a.flag is not None})
        run = self.connection.execute
        with self.connection.pipeline():
            run(self._queries["begin"])
            locked = run(self._queries["lock_positions"], {"topic": topic, "partitions": list(partitions)})
            seen = run(self._queries["find_seen"], (ids,))
            rows = run(self._queries["load_deposits"], (deposits,))
            owners = run(self._queries["load_correlations"], (deposits,))
            # After the correlations: one that is written in between is seen together with the events that waited.
            parked = run(
                self._queries["load_parked"], {"objects": touched, "partitions": list(partitions), "limit": limit}
            )
            flags = run(self._queries["load_flags"], (claims,)) if claims else None
            before = run(self._queries["find_quarantined"], (ids,))
        loaded = Loaded({number: Position(*rest) for number, *rest in locked.fetchall()})
        loaded.seen = {event_id: Known(*rest) for event_id, *rest in seen.fetchall()}
        loaded.deposits = {row[0]: _state(row) for row in rows.fetchall()}
        loaded.correlations = {key: Correlation(order, user) for key, order, user in owners.fetchall()}
        loaded.flags = {row[0]: _flag(row) for row in flags.fetchall()} if flags is not None else {}
        loaded.set_aside_before = {event_id for (event_id,) in before.fetchall()}
        for *row, owner in parked.fetchall():
            arrival = self._parked(row)
            loaded.parked.append(arrival)
            loaded.correlations.setdefault(row[4], Correlation(owner[0], owner[1]))
        more = sorted({a.flag.flag.claim_id for a in loaded.parked if a.flag is not None} - loaded.flags.keys())
        if more:
            loaded.flags.update({row[0]: _flag(row) for row in run(self._queries["load_flags"], (more,)).fetchall()})
        return loaded

    def write(self, topic: str, plan: Plan) -> None:
        """Writes the plan; raises CountDiffers where a guarded statement changed other rows than decided.

        The rows that all workers share, the users', come last but for the outbox, which needs their balances.
        """
        with self.connection.pipeline():
            counted = self._write_aggregates(plan)
        for name, expected, cursor in counted:
            if cursor.rowcount != expected:
                raise CountDiffers(name, expected, cursor.rowcount)
        if plan.inbox:
            self._copy("copy_inbox", copying.inbox(plan.inbox, self._clock.now()))
        self._write_entries(plan)
        if plan.outbox:
            self._copy("copy_outbox", copying.outbox(plan.outbox))
        self._advance(topic, plan)

    def commit(self) -> None:
        """Commits; when the connection dies meanwhile, only the stored positions tell whether it happened."""
        self.connection.execute("COMMIT")

    def roll_back(self) -> None:
        """Gives up the transaction; raises psycopg.OperationalError when the connection is gone."""
        self.connection.execute("ROLLBACK")

    def _write_aggregates(self, plan: Plan) -> list[tuple[str, int, Any]]:
        counted: list[tuple[str, int, Any]] = []
        run = self.connection.execute
        if plan.deposits:
            rows = [deposit_row(plan.deposits[key]) for key in sorted(plan.deposits)]
            counted.append(
                ("write_deposits", len(rows), run(self._queries["write_deposits"], (_encode(rows).decode(),)))
            )
        if plan.flags:
            flags = [flag_row(plan.flags[key]) for key in sorted(plan.flags)]
            counted.append(("write_flags", len(flags), run(self._queries["write_flags"], (_encode(flags).decode(),))))
        if plan.finished:
            columns = (
                [row.headers.id for row in plan.finished],
                [row.verdict for row in plan.finished],
                [row.reason for row in plan.finished],
            )
            counted.append(("finish_parked", len(plan.finished), run(self._queries["finish_parked"], columns)))
        if plan.dropped:
            counted.append(("drop_parked", len(plan.dropped), run(self._queries["drop_parked"], (plan.dropped,))))
        if plan.resolved:
            run(self._quarantine["resolve"], tuple(list(column) for column in zip(*plan.resolved, strict=True)))
        if plan.redeliveries:
            run(self._queries["note_redeliveries"], _redelivery_columns(plan.redeliveries))
        if plan.set_aside:
            quarantine.add(self.connection, self._quarantine, [quarantine.row_of(row) for row in plan.set_aside])
        return counted

    def _write_entries(self, plan: Plan) -> None:
        if not plan.entries:
            return
        rows = _encode([entry_row(row) for row in plan.entries]).decode()
        after: dict[str, int] = dict(self.connection.execute(self._queries["write_entries"], (rows,)).fetchall())
        # The statement gives each user's balance after the batch; walking back gives it after each entry.
        for row in reversed(plan.entries):
            row.balance_after_minor = after[row.draft.user_id]
            after[row.draft.user_id] -= row.draft.amount_minor

    def _advance(self, topic: str, plan: Plan) -> None:
        with self.connection.pipeline():
            advanced = self.connection.execute(self._queries["advance"], advance_parameters(topic, plan.positions))
            if plan.outbox:
                self.connection.execute(self._queries["notify"], (self._channel,))
        if advanced.rowcount != len(plan.positions):
            raise CountDiffers("advance", len(plan.positions), advanced.rowcount)

    def _copy(self, name: str, data: bytes) -> None:
        with self.connection.cursor() as cursor, cursor.copy(self._queries[name]) as copy:
            copy.write(data)

    def _parked(self, row: Sequence[Any]) -> Arrival:
        """An event of the inbox that waited, as an arrival."""
        event_id, event_type, text, received_at, object_id, kind, version, merchant, sequence, partition = row[:10]
        arrival_seq, source_partition, source_offset, key_id, origin = row[10:]
        headers = EventHeaders(
            id=event_id,
            type=event_type,
            source="/inbox",
            subject=object_id,
            time=received_at.isoformat(),
            object_kind=kind,
            status="",
            version=version,
            merchant=merchant,
            sequence=sequence,
            livemode=self._livemode,
            received_at=received_at.isoformat(),
            origin=origin,
            key_id=key_id,
        )
        source = Source(self._names.events, source_partition, source_offset)
        arrival = Arrival(partition, None, 0, text.encode(), headers.encode(), source)
        arrival.headers, arrival.received_at, arrival.arrival_seq = headers, received_at, arrival_seq
        read_body(arrival, headers)
        return arrival


def advance_parameters(topic: str, positions: Mapping[int, Position]) -> dict[str, Any]:
    """The parameters of the statement `advance`."""
    order = sorted(positions)
    held = [positions[number] for number in order]
    return {
        "topic": topic,
        "partitions": order,
        "epochs": [position.epoch for position in held],
        "next_offsets": [position.next_offset for position in held],
        "next_outbox_seqs": [position.next_outbox_seq for position in held],
        "next_arrival_seqs": [position.next_arrival_seq for position in held],
    }


def _redelivery_columns(arrivals: Sequence[Arrival]) -> tuple[list[Any], ...]:
    known = [(arrival, arrival.headers) for arrival in arrivals if arrival.headers is not None]
    return (
        [headers.id for _, headers in known],
        [arrival.source.partition for arrival, _ in known],
        [arrival.source.offset for arrival, _ in known],
        [arrival.received_at for arrival, _ in known],
        ["redelivered"] * len(known),
    )


def _state(row: Sequence[Any]) -> DepositState:
    key, version, order_id, user_id, taken_back, credited, entry = row
    if credited and entry is None:
        raise LedgerBroken(
            f"deposit {key} is marked as credited and has no entry deposit:{key}:credit in pg_user_balance_entries;"
            " restore the entry (see `tallyhook audit`): nothing is decided on a ledger that contradicts itself"
        )
    credit = Credit(entry[0], int(entry[1])) if entry is not None else None
    return DepositState(key, Correlation(order_id, user_id), version, None, credit, taken_back)


def _flag(row: Sequence[Any]) -> FlagDraft:
    claim_id, deposit_id, version, cause, amount_minor, slip_received_at, status, action, expected_response_at, raw = (
        row
    )
    flag = Overpayment(claim_id, cause, amount_minor, slip_received_at.isoformat(), status, action)
    return FlagDraft(deposit_id, version, flag, slip_received_at, expected_response_at, raw.encode())
