"""The watchdog: ends the process when it cannot make progress though it could, so that the supervisor starts another.

A thread of its own, since a blocked event loop cannot stop it. Faust and aiokafka have ways to hang for ever with a
process that looks alive (a group coordination that ended, commits that stall): only what moves counts.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from typing import NoReturn, Protocol

from streams.positions import Position, Positions
from tallyhook.clock import Clock
from tallyhook.errors import KafkaUnavailable, PositionLost
from tallyhook.logs import logger
from tallyhook.metrics import Metrics

TICK_SECONDS = 2.0
FROZEN_SECONDS = 15.0
"""A tick that comes so late was frozen with its process: the clock starts anew."""

ONE_PARTITION_FACTOR = 4
"""One partition may stand still so many times longer than all of them."""

TOPIC_ID_TICKS = 5

log = logger(__name__)


class Worker(Protocol):
    """What the watchdog can see of the worker, from another thread."""

    def crashed(self) -> str | None:
        """What ended its services, if something did."""
        ...

    def coordination_ended(self) -> bool:
        """Whether the group coordination is over though the worker is not stopping."""
        ...

    def owned(self) -> Collection[int]:
        """Partitions of `events` that the group gave to this worker."""
        ...

    def fetched_to(self, partition: int) -> int | None:
        """The offset it fetches next, when all before it was acked; else None."""
        ...

    def progress(self) -> int:
        """Grows with every batch and every changelog record that is replayed."""
        ...


class Stall:
    """Decides from successive observations whether the worker is stuck. Pure.

    Args:
        stall_seconds: no progress at all though work waits.
    """

    def __init__(self, stall_seconds: float) -> None:
        self.stall_seconds = stall_seconds
        self._state: tuple[int, int, frozenset[int]] | None = None
        self._since: float | None = None
        self._last_tick: float | None = None
        self._commits: dict[int, tuple[int, float]] = {}

    def reset(self) -> None:
        """The broker did not answer: nobody could have made progress, so all clocks start anew."""
        self._since = None
        self._commits.clear()

    def observe(
        self, now: float, waiting: dict[int, int], moved: tuple[int, int], commits: dict[int, int]
    ) -> str | None:
        """Why the process should end, or None.

        Args:
            now: monotonic seconds.
            waiting: events not yet judged, by partition, where there are any.
            moved: counters that change with any progress.
            commits: committed offsets of the partitions this worker owns.
        """
        if self._last_tick is not None and now - self._last_tick > FROZEN_SECONDS:
            self.reset()
        self._last_tick = now
        state = (*moved, frozenset(commits))
        if state != self._state or not waiting or self._since is None:
            self._state, self._since = state, now
        for partition, offset in commits.items():
            known = self._commits.get(partition)
            if known is None or known[0] != offset or partition not in waiting:
                self._commits[partition] = (offset, now)
        for partition in self._commits.keys() - commits.keys():
            del self._commits[partition]
        if now - self._since > self.stall_seconds:
            return (
                f"nothing moved for {now - self._since:.0f} s, {sum(waiting.values())} events wait in {sorted(waiting)}"
            )
        for partition, (_, since) in self._commits.items():
            if now - since > self.stall_seconds * ONE_PARTITION_FACTOR:
                return (
                    f"partition {partition} did not move for {now - since:.0f} s, {waiting.get(partition)} events wait"
                )
        return None


class Watchdog(threading.Thread):
    """Looks every two seconds: at the group coordination, at positions and topic, at lag and progress.

    While the broker does not answer the clock stands still: a new process could do no more than this one.

    Args:
        worker: what is watched.
        positions: asks the broker.
        topic_id: the id of `events` when the worker started.
        partitions: of the installation.
        stall_seconds: see `Stall`.
        clock: monotonic time.
        metrics: gets the lag by partition.
        end: ends the process; nothing is acked.
    """

    def __init__(
        self,
        worker: Worker,
        positions: Positions,
        *,
        topic_id: str,
        partitions: int,
        stall_seconds: float,
        clock: Clock,
        metrics: Metrics,
        end: Callable[[str], NoReturn],
    ) -> None:
        super().__init__(name="watchdog", daemon=True)
        self._worker, self._positions, self._topic_id = worker, positions, topic_id
        self._partitions, self._clock, self._metrics, self._end = partitions, clock, metrics, end
        self._stall = Stall(stall_seconds)
        self._stopping = threading.Event()
        self._shown: set[int] = set()
        self._ticked_at = clock.monotonic_seconds()
        self._patience_seconds = max(60.0, 2 * stall_seconds)
        self.broker_answers = True

    def run(self) -> None:
        """Until `stop`, or until it ends the process."""
        ticks = 0
        while not self._stopping.wait(TICK_SECONDS):
            try:
                self._tick(look_at_topic=ticks % TOPIC_ID_TICKS == 0)
            except Exception as failure:  # noqa: BLE001  a watchdog that has died watches nothing
                self._end(f"the watchdog failed: {failure!r}")
            ticks += 1

    def stop(self) -> None:
        """The worker stops by itself: from here on nothing is expected of it."""
        self._stopping.set()

    def not_live(self) -> Sequence[str]:
        """Why the process should be replaced: what `/livez` shows."""
        if self._stopping.is_set():
            return ()
        if self._worker.coordination_ended():
            return ("the group coordination has ended",)
        silent = self._clock.monotonic_seconds() - self._ticked_at
        return (f"the watchdog has not looked for {silent:.0f} s",) if silent > self._patience_seconds else ()

    def _tick(self, *, look_at_topic: bool) -> None:
        if crash := self._worker.crashed():
            self._end(f"the worker crashed: {crash}")
        if self._worker.coordination_ended():
            self._end("the group coordination has ended")
        owned = set(self._worker.owned())
        progress = self._worker.progress()
        try:
            # Without partitions of its own a worker is idle as long as the others commit.
            found = self._positions.read(sorted(owned) or range(self._partitions))
            topic_id = self._positions.events_topic_id() if look_at_topic else self._topic_id
        except KafkaUnavailable as failure:
            if self.broker_answers:
                log.warning("the broker does not answer", failure=str(failure))
            self.broker_answers = False
            self._stall.reset()
            self._ticked_at = self._clock.monotonic_seconds()
            return
        self.broker_answers = True
        self._show({number: found[number].lag for number in owned})
        try:
            if topic_id != self._topic_id:
                raise PositionLost(f"the events topic has id {topic_id}, this worker began with {self._topic_id}")
            self._positions.check(found, self._topic_id)
        except PositionLost as lost:
            self._end(str(lost))
        waiting = {number: position.lag for number, position in found.items() if self._waits(number, position)}
        commits = {number: found[number].committed or -1 for number in owned}
        others = 0 if owned else sum(position.committed or 0 for position in found.values())
        now = self._clock.monotonic_seconds()
        why = self._stall.observe(now, waiting, (progress, others), commits)
        self._ticked_at = now
        if why is not None:
            self._end(f"stalled: {why}")

    def _waits(self, partition: int, position: Position) -> bool:
        if position.lag <= 0:
            return False
        # A transaction marker at the end is never delivered, and so never acked.
        fetched_to = self._worker.fetched_to(partition)
        return fetched_to is None or fetched_to < position.high

    def _show(self, lags: dict[int, int]) -> None:
        for partition in self._shown | lags.keys():
            self._metrics.gauge("tallyhook_stream_lag_events", partition=str(partition)).set(lags.get(partition, 0))
        self._shown = set(lags)
