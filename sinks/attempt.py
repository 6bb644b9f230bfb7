"""One transaction: what it is to do, and the try that commits it or gives it up."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sinks.domain.decision import Refusal
from sinks.fence import Fence
from sinks.overlay import Overlay
from sinks.plan import Plan
from sinks.quarantine import QuarantineWindow
from sinks.records import Arrival, Source
from sinks.transaction import BatchStatements
from tallyhook.failpoints import reach


@dataclass(frozen=True, slots=True)
class Work:
    """What one transaction is to do: arrivals in order, and objects whose parked events can go on.

    Args:
        parked_rows: most parked events that it takes.
        forced: refusals by source for events that the database refused.
        refused_first: the same for the first parked event, whichever it is.
        alone: what waits for a row that the arrivals build is left to transactions of its own.
    """

    arrivals: Sequence[Arrival] = ()
    objects: Sequence[str] = ()
    partitions: Sequence[int] = ()
    parked_rows: int = 0
    forced: Mapping[Source, Refusal] = field(default_factory=dict)
    refused_first: Refusal | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """What a committed transaction wrote, and the withdrawal after whose builder it had to end."""

    plan: Plan
    cut: str | None


class Attempt:
    """Loads, decides, writes and commits.

    Args:
        statements: of the connection that holds the fence.
        fence: moved on by what is committed.
        window: likewise.
        max_payload_bytes: largest payload of an effect.
    """

    def __init__(
        self, statements: BatchStatements, fence: Fence, window: QuarantineWindow, *, max_payload_bytes: int
    ) -> None:
        self._statements, self._fence, self._window = statements, fence, window
        self._max_payload_bytes = max_payload_bytes

    def run(self, work: Work, seconds: dict[str, float]) -> Done | None:
        """One transaction; None, rolled back, when so many events waited that these must be applied first.

        Raises what `Applier.apply` does; the transaction is still open then.

        Args:
            seconds: what each step took is added here, by step.
        """
        mark = time.perf_counter()

        def lap(step: str) -> None:
            nonlocal mark
            now = time.perf_counter()
            seconds[step] += now - mark
            mark = now

        reach("sink.taken")
        loaded = self._statements.begin_and_load(
            self._fence.topic, work.arrivals, work.objects, work.partitions, work.parked_rows, alone=work.alone
        )
        lap("load")
        reach("sink.locked_and_loaded")
        self._fence.demand(loaded.positions, work.partitions)
        if work.arrivals and len(loaded.parked) >= work.parked_rows:
            self._statements.roll_back()
            return None
        forced = dict(work.forced)
        if work.refused_first is not None and loaded.parked:
            forced[loaded.parked[0].source] = work.refused_first
        overlay = Overlay(loaded, max_payload_bytes=self._max_payload_bytes, window=self._window, forced=forced)
        for arrival in (*loaded.parked, *work.arrivals):
            overlay.take(arrival)
            if overlay.window.exceeded or overlay.cut is not None:
                break
        lap("decide")
        reach("sink.decided")
        self._statements.write(self._fence.topic, overlay.plan)
        lap("write")
        self._statements.commit()
        lap("commit")
        reach("sink.committed")
        self._fence.positions.update(overlay.plan.positions)
        self._window.adopt(overlay.window)
        return Done(overlay.plan, overlay.cut)
