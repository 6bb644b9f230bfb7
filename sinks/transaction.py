"""The statements of one batch's transaction: what is read under the fence, and what is written before the commit."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from schemas.topics import TopicNames
from sinks import copying, quarantine
from sinks.errors import CountDiffers
from sinks.loaded import Loaded
from sinks.loading import BatchLoading
from sinks.plan import Plan, Position
from sinks.records import Arrival
from sinks.rows import deposit_row, entry_row, flag_row
from sinks.withdrawal_writing import Counted, WithdrawalWriting
from tallyhook.clock import Clock
from tallyhook.failpoints import reach
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
        lock_space: the key under which the workers of this installation lock transactions of reversals.
    """

    def __init__(
        self,
        connection: Connection,
        schema: str,
        names: TopicNames,
        *,
        livemode: bool,
        channel: str,
        lock_space: int,
        clock: Clock,
    ) -> None:
        self.connection, self._channel, self._clock = connection, channel, clock
        self._queries = Queries("sinks", "sql/batch.sql", schema)
        self._quarantine = Queries("sinks", "sql/quarantine.sql", schema)
        withdrawals = Queries("sinks", "sql/withdrawals.sql", schema)
        self._loading = BatchLoading(connection, self._queries, withdrawals, names, livemode=livemode)
        self._withdrawals = WithdrawalWriting(connection, withdrawals, lock_space)
        # Each look-up is by key. A plan that was prepared while the tables were small would scan them for ever.
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET jit = off")
        # A worker that is frozen between two statements must not hold users' rows for long.
        connection.execute("SET idle_in_transaction_session_timeout = '60s'")

    def begin_and_load(
        self,
        topic: str,
        arrivals: Sequence[Arrival],
        objects: Sequence[str],
        partitions: Sequence[int],
        limit: int,
        *,
        alone: bool = False,
    ) -> Loaded:
        """Opens the transaction, locks the positions and reads what the batch touches, in one to three round trips.

        Args:
            objects: further objects whose parked events are wanted, beside those of the arrivals.
            limit: most parked events to be read.
            alone: what waits for a row that the arrivals build is left to later transactions.
        """
        return self._loading.begin_and_load(topic, arrivals, objects, partitions, limit, alone=alone)

    def write(self, topic: str, plan: Plan) -> None:
        """Writes the plan; raises CountDiffers where a guarded statement changed other rows than decided.

        The rows that all workers share, the users', come last but for the outbox, which needs their balances.
        """
        with self.connection.pipeline():
            counted = self._write_aggregates(plan)
        for row in counted:
            if row.cursor.rowcount != row.expected:
                raise CountDiffers(row.name, row.expected, row.cursor.rowcount)
        reach("sink.rows_written")
        if plan.inbox:
            self._copy("copy_inbox", copying.inbox(plan.inbox.values(), self._clock.now()))
        reach("sink.inbox_written")
        self._write_entries(plan)
        reach("sink.balances_written")
        if plan.outbox:
            self._copy("copy_outbox", copying.outbox(plan.outbox))
        reach("sink.outbox_written")
        self._advance(topic, plan)
        reach("sink.offset_advanced")

    def commit(self) -> None:
        """Commits; when the connection dies meanwhile, only the stored positions tell whether it happened."""
        reach("sink.commit_sent", self._send_commit)
        self.connection.execute("COMMIT")

    def roll_back(self) -> None:
        """Gives up the transaction; raises psycopg.OperationalError when the connection is gone."""
        self.connection.execute("ROLLBACK")

    def _send_commit(self) -> None:
        """Sends it without waiting for the answer; only for a process that dies at this very place."""
        self.connection.pgconn.send_query(b"COMMIT")
        self.connection.pgconn.flush()

    def _write_aggregates(self, plan: Plan) -> list[Counted]:
        counted: list[Counted] = []
        if plan.deposits:
            rows = [deposit_row(plan.deposits[key]) for key in sorted(plan.deposits)]
            counted.append(self._count("write_deposits", len(rows), (_encode(rows).decode(),)))
        if plan.flags:
            flags = [flag_row(plan.flags[key]) for key in sorted(plan.flags)]
            counted.append(self._count("write_flags", len(flags), (_encode(flags).decode(),)))
        counted += self._withdrawals.write(plan)
        if plan.finished:
            columns = (
                [row.headers.id for row in plan.finished],
                [row.verdict for row in plan.finished],
                [row.reason for row in plan.finished],
            )
            counted.append(self._count("finish_parked", len(plan.finished), columns))
        if plan.dropped:
            counted.append(self._count("drop_parked", len(plan.dropped), (plan.dropped,)))
        run = self.connection.execute
        if plan.resolved:
            run(self._quarantine["resolve"], tuple(list(column) for column in zip(*plan.resolved, strict=True)))
        if plan.redeliveries:
            run(self._queries["note_redeliveries"], _redelivery_columns(plan.redeliveries))
        if plan.set_aside:
            quarantine.add(self.connection, self._quarantine, [quarantine.row_of(row) for row in plan.set_aside])
        return counted

    def _count(self, name: str, expected: int, parameters: Any) -> Counted:
        return Counted(name, expected, self.connection.execute(self._queries[name], parameters))

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
            reach("sink.copying")


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
