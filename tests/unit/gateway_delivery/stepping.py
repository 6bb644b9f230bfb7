"""Time that a test moves, a receiver whose answers a test has written down, and worlds of a few events."""

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

from tallyhook.gateway.counts import Counts
from tallyhook.gateway.delivery import DeliveryEngine
from tallyhook.gateway.plan import Delivery
from tallyhook.gateway.rotation import Signer
from tallyhook.gateway.schedule import RetrySchedule
from tallyhook.gateway.signing import SigningKey
from tallyhook.gateway.world.ending import ExpectedEnd
from tallyhook.gateway.world.model import Correlation, SimEvent, SimObject, SimTransaction, World
from tallyhook.settings.gateway_sim import DEFAULT_RETRY_SECONDS

START = datetime(2026, 3, 2, 10, 4, 41, tzinfo=UTC)
WALL = datetime(2031, 1, 1, tzinfo=UTC)
NOTHING_EXPECTED = ExpectedEnd({}, {}, {}, {}, frozenset(), {}, frozenset(), frozenset())


class SetClock:
    """A wall clock that stands where the test sets it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        """From `WALL` on."""
        return WALL + timedelta(seconds=self.seconds)

    def monotonic_seconds(self) -> float:
        """From zero on."""
        return self.seconds


class StepTime:
    """Virtual time that leaps to the next moment that anybody waits for."""

    def __init__(self, begin: datetime = START) -> None:
        self._now = begin

    def now(self) -> datetime:
        """Where it has leapt to."""
        return self._now

    async def wait(self, until: datetime | None, changed: asyncio.Event) -> None:
        """At once, unless there is nothing to leap to."""
        if until is None:
            await changed.wait()
        else:
            self._now = max(self._now, until)


class WrittenReceiver:
    """Answers attempts by a rule and notes each: virtual moment, event id, headers."""

    def __init__(self, time: StepTime, answer: Callable[[str, int], int] = lambda _id, _attempt: 200) -> None:
        self._time, self._answer = time, answer
        self.posts: list[tuple[datetime, str, dict[str, str]]] = []

    async def post(self, _body: bytes, headers: dict[str, str]) -> int:
        """The status that the rule gives for the event id and the number of its attempt, from 1."""
        event_id = headers["webhook-id"]
        self.posts.append((self._time.now(), event_id, headers))
        return self._answer(event_id, self.ids.count(event_id))

    @property
    def ids(self) -> list[str]:
        """Of the events, in the order of the attempts."""
        return [event_id for _, event_id, _ in self.posts]

    def offsets(self, event_id: str) -> list[timedelta]:
        """Distances of an event's attempts from its first one."""
        moments = [moment for moment, found, _ in self.posts if found == event_id]
        return [moment - moments[0] for moment in moments]


def event(
    number: int, object_id: str = "dep_1", *, after_seconds: float | None = None, withheld: bool = False
) -> SimEvent:
    """The event with this sequence; created a minute a number after the start unless told."""
    moment = START + timedelta(seconds=60.0 * number if after_seconds is None else after_seconds)
    body = json.dumps({"id": f"evt_{number}", "sequence": number}).encode()
    return SimEvent(
        id=f"evt_{number}",
        type="deposit.open",
        object_id=object_id,
        object_kind="deposit_order",
        version=number,
        status="open",
        sequence=number,
        created_at=moment,
        livemode=True,
        body=body,
        never_delivered=withheld,
    )


def world_of(
    events: Iterable[SimEvent],
    *,
    objects: Sequence[SimObject] = (),
    transactions: Sequence[SimTransaction] = (),
    correlations: Sequence[Correlation] = (),
) -> World:
    """A world of these; its expected end is empty."""
    return World(
        seed=1,
        merchant_id="mch_1",
        started_at=START,
        events=tuple(events),
        objects={one.id: one for one in objects},
        transactions=tuple(transactions),
        correlations=tuple(correlations),
        scenarios={},
        expected=NOTHING_EXPECTED,
        expected_complete=NOTHING_EXPECTED,
    )


def engine_of(
    deliveries: Sequence[Delivery],
    receiver: WrittenReceiver,
    time: StepTime,
    *,
    signer: Signer | None = None,
    schedule: str = DEFAULT_RETRY_SECONDS,
) -> DeliveryEngine:
    """An engine that makes one attempt after the other."""
    return DeliveryEngine(
        deliveries,
        pace=time,
        schedule=RetrySchedule.from_text(schedule),
        signer=signer or Signer(SigningKey(b"k" * 32), SetClock()),
        receiver=receiver,
        counts=Counts(deliverable=len(deliveries), withheld=0),
        concurrency=1,
    )


async def drain(engine: DeliveryEngine) -> None:
    """Runs until nothing is left to deliver; a fault of the engine's own ends the test."""
    working = asyncio.create_task(engine.run())
    drained = asyncio.create_task(engine.drained.wait())
    await asyncio.wait({working, drained}, return_when=asyncio.FIRST_COMPLETED)
    engine.stop()
    drained.cancel()
    await working
