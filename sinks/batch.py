"""One transaction a batch: the sink's core, usable without Kafka.

applier = Applier(connection, installation)
applier.claim([0, 1])
result = applier.apply([SinkRecord(0, 0, applier.epoch(0), body, headers)])
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import psycopg

from schemas.topics import TopicNames
from sinks.attempt import Attempt, Done, Work
from sinks.contents import WithdrawalContent
from sinks.domain.decision import Refusal
from sinks.errors import CountDiffers, NumbersTaken, TooManyQuarantined
from sinks.faults import is_event_fault, numbers_taken, passing_cause, what_was_refused
from sinks.fence import Fence, TopicRange
from sinks.parking import Parking
from sinks.plan import BatchResult, Plan
from sinks.quarantine import QuarantineWindow
from sinks.records import Arrival, Reader, SinkRecord
from sinks.transaction import BatchStatements
from tallyhook.clock import Clock, SystemClock
from tallyhook.errors import FenceLost
from tallyhook.postgres import Connection
from tallyhook.settings import Installation, SinkSettings

REPEATS_MAX = 10
CONFLICTS_MAX = 3
"""A key that is still taken after the third look is taken for good."""
PARKED_ROWS_MAX = 5000
IN_PROCESS_TOPIC_ID = "in-process"


class Applier:
    """Applies batches of state changes through one connection; owns the partitions that it has claimed.

    Args:
        connection: autocommit and in UTC, as `tallyhook.postgres.connect` makes it; used by nobody else.
        installation: whose schema and topics.
        settings: limits of the sink; the defaults when None.
        topic_id: the broker's id of `state-changes`.
        window: what was quarantined before, where this applier takes over from another one.
        parked_rows_max: most parked events a transaction; more of them are applied in several, in order.
    """

    def __init__(
        self,
        connection: Connection,
        installation: Installation,
        settings: SinkSettings | None = None,
        *,
        topic_id: str = IN_PROCESS_TOPIC_ID,
        window: QuarantineWindow | None = None,
        parked_rows_max: int = PARKED_ROWS_MAX,
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings or SinkSettings()
        names = TopicNames(installation.topic_prefix)
        schema = installation.schema_name
        self.fence = Fence(connection, schema, names.state_changes, topic_id)
        self.reader = Reader(names, installation.livemode)
        clock = clock or SystemClock()
        self.parking = Parking(connection, schema, clock)
        self.window = window or QuarantineWindow(self._settings.quarantine_limit)
        self._parked_rows_max = parked_rows_max
        self._statements = BatchStatements(
            connection,
            schema,
            names,
            livemode=installation.livemode,
            channel=installation.channel("outbox"),
            # The upper half of the key, which is one of 32 bits: the lower half names the transaction's lock.
            lock_space=installation.lock_key("reversals") >> 32,
            clock=clock,
        )
        self._attempt = Attempt(
            self._statements, self.fence, self.window, max_payload_bytes=self._settings.max_payload_bytes
        )

    def claim(self, partitions: Iterable[int], held: Mapping[int, TopicRange] | None = None) -> None:
        """Makes this the owner of the partitions; see `Fence.claim` for `held` and what is raised."""
        for partition in sorted(partitions):
            self.fence.claim(partition, held[partition] if held else None, self._settings.claim_wait_seconds)
        self.parking.look_at_all()

    def epoch(self, partition: int) -> int:
        """The epoch of a claimed partition, for the records that are read from now on."""
        return self.fence.positions[partition].epoch

    def apply(self, records: Sequence[SinkRecord]) -> BatchResult:
        """Applies records in order, each once, in one transaction unless one of them is poison.

        Raises:
            FenceLost: another worker owns a partition; nothing of what is left was written.
            psycopg.Error: the database is away or unwell; the positions that are stored tell what was applied.
            CountDiffers, LedgerBroken, NumbersTaken: somebody else wrote to the tables; nothing was written.
            TooManyQuarantined: the batch before this one went over the limit.
        """
        began = time.perf_counter()
        arrivals = self.reader.read_all(records)
        result = self.apply_arrivals(arrivals)
        result.seconds["decode"] += time.perf_counter() - began - sum(result.seconds.values())
        return result

    def apply_arrivals(self, arrivals: Sequence[Arrival]) -> BatchResult:
        """The same for records that are decoded already (`reader.read_all`)."""
        result = BatchResult()
        self._refuse_when_stopped()
        for arrival in arrivals:
            position = self.fence.positions.get(arrival.partition)
            if position is None or position.epoch != arrival.epoch:
                raise FenceLost(
                    f"partition {arrival.partition} of {self.fence.topic} was read under claim {arrival.epoch},"
                    f" held is {position}"
                )
        if arrivals:
            self._do(Work(arrivals, (), _partitions(arrivals), self._parked_rows_max), result)
        return result

    def apply_ready(self) -> BatchResult:
        """Applies parked events whose correlation or row is there by now; cheap when there are none."""
        result = BatchResult()
        self._refuse_when_stopped()
        partitions = sorted(self.fence.positions)
        if partitions:
            for objects in (self.parking.find_ready(partitions), self.parking.find_built(partitions)):
                if objects:
                    self._drain(objects, partitions, result)
        return result

    def _refuse_when_stopped(self) -> None:
        if self.window.exceeded:
            raise TooManyQuarantined(
                f"more than {self.window.limit} of the last 1,000 events were set aside: look at them with"
                " `tallyhook quarantine list`, repair the cause, then restart the sink; if they are what they seem,"
                " restart it with a higher TALLYHOOK_SINK_QUARANTINE_LIMIT"
            )

    def _do(self, work: Work, result: BatchResult) -> None:
        """Does the work; where an event is at fault, finds it by halving and sets it aside alone."""
        rest: Work | None = work
        while rest is not None and not result.stopped:
            part = rest
            try:
                rest = self._repeat(part, result)
            except psycopg.Error as failure:
                if not is_event_fault(failure):
                    raise
                if numbers_taken(failure):
                    raise NumbersTaken(
                        f"{failure.diag.constraint_name} refused a number: sink_offsets was set back behind its tables;"
                        " restore it from the same backup as these"
                    ) from failure
                result.repeated["refused"] += 1
                if part.forced or part.refused_first is not None:
                    # Even setting it aside was refused: that is no fault of the event any more, and it would not end.
                    raise
                self._halve(part, Refusal("database_refused", what_was_refused(failure)), result)
                return

    def _halve(self, work: Work, refusal: Refusal, result: BatchResult) -> None:
        arrivals = work.arrivals
        if len(arrivals) > 1:
            middle = len(arrivals) // 2
            for half in (arrivals[:middle], arrivals[middle:]):
                self._do(Work(half, (), _partitions(half), work.parked_rows), result)
            return
        if len(arrivals) == 1:
            headers = arrivals[0].headers
            finished = result.finished
            if headers is not None:
                # Events that waited are decided before this one: they may be at fault, so they go alone first.
                self._drain((headers.subject,), work.partitions, result)
            if result.finished != finished:
                self._do(replace(work, forced={}), result)
            elif not work.alone and isinstance(arrivals[0].content, WithdrawalContent):
                # Or they are decided after it, because it builds their row.
                self._do(replace(work, alone=True), result)
            else:
                self._do(replace(work, forced={arrivals[0].source: refusal}), result)
            return
        if len(work.objects) > 1:
            middle = len(work.objects) // 2
            for objects in (work.objects[:middle], work.objects[middle:]):
                self._do(Work((), objects, work.partitions, work.parked_rows), result)
            return
        if work.parked_rows > 1:
            middle = work.parked_rows // 2
            for rows in (middle, work.parked_rows - middle):
                self._do(Work((), work.objects, work.partitions, rows), result)
            return
        self._repeat(Work((), work.objects, work.partitions, 1, refused_first=refusal), result)

    def _repeat(self, work: Work, result: BatchResult) -> Work | None:
        """One transaction, decided anew as often as somebody else's commit was in its way.

        Gives what is left to do, where the transaction had to end before the last arrival.
        """
        for attempt in range(1, REPEATS_MAX + 1):
            try:
                done = self._attempt.run(work, result.seconds)
            except (psycopg.Error, CountDiffers) as failure:
                self._give_up_transaction(failure)
                cause = passing_cause(failure)
                if cause is None or attempt >= (CONFLICTS_MAX if cause == "conflict" else REPEATS_MAX):
                    raise
                result.repeated[cause] += 1
            except BaseException as failure:
                self._give_up_transaction(failure)
                raise
            else:
                if done is not None:
                    self._count(work, done.plan, result)
                    return self._after(work, done, result)
                # So many events waited for these objects that they are applied first, in transactions of their own.
                objects = {arrival.headers.subject for arrival in work.arrivals if arrival.headers is not None}
                self._drain(sorted(objects), work.partitions, result)
                if result.stopped:
                    return None
        raise CountDiffers("load_parked", 0, PARKED_ROWS_MAX)

    def _after(self, work: Work, done: Done, result: BatchResult) -> Work | None:
        """Goes on after a transaction that built a row for which more events wait than it could take."""
        if done.cut is None:
            return None
        self._drain((done.cut,), work.partitions, result)
        rest = [
            a
            for a in work.arrivals
            if a.offset is not None and a.offset >= done.plan.positions[a.partition].next_offset
        ]
        return replace(work, arrivals=rest, objects=(), partitions=_partitions(rest)) if rest else None

    def _count(self, work: Work, plan: Plan, result: BatchResult) -> None:
        taken = sum(
            arrival.offset is not None and arrival.offset < plan.positions[arrival.partition].next_offset
            for arrival in work.arrivals
        )
        result.add_plan(plan, taken, self.window.exceeded)

    def _drain(self, objects: Sequence[str], partitions: Sequence[int], result: BatchResult) -> None:
        """Applies what waits for these objects, in as many transactions as it takes."""
        finished = -1
        while not result.stopped and result.finished != finished:
            finished = result.finished
            self._do(Work((), objects, partitions, self._parked_rows_max), result)

    def _give_up_transaction(self, failure: BaseException) -> None:
        """Rolls back; with a broken connection there is nothing left to roll back, and the first failure counts."""
        try:
            self._statements.roll_back()
        except psycopg.Error as second:
            failure.add_note(f"the transaction could not be rolled back either: {second}")


def _partitions(arrivals: Sequence[Arrival]) -> list[int]:
    return sorted({arrival.partition for arrival in arrivals})
