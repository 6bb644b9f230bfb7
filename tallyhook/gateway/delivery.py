"""The delivery engine: every event is posted until it is accepted or its attempts are used, so many at once."""

import asyncio
import heapq
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import count
from typing import Final

from tallyhook.gateway.attempts import ATTEMPT_SECONDS, Receiver
from tallyhook.gateway.counts import Counts
from tallyhook.gateway.plan import Delivery
from tallyhook.gateway.rotation import Signer
from tallyhook.gateway.schedule import RetrySchedule
from tallyhook.gateway.virtual_time import Pace
from tallyhook.gateway.world.model import SimEvent

MAX_RESENDS_WAITING: Final = 10_000
STOP_SECONDS: Final = ATTEMPT_SECONDS + 1.0
"""How long a stop waits for attempts that were begun; each of them has a time-out of its own."""


class TooManyResends(Exception):
    """So many resends wait that no more are taken."""


class DeliveryEngine:
    """Works through deliveries in the order in which they fall due.

    What waits is bounded by the world: an event has one delivery at a time, beside the resends that were asked for.

    Args:
        deliveries: what the gateway sets out to do.
        pace: virtual time; attempts fall due in it.
        schedule: when a refused delivery is tried again.
        signer: signs each attempt at wall time.
        receiver: takes them.
        counts: what became of each.
        concurrency: most attempts at once.
        accepted: called with the id of each event that is accepted, and the virtual moment.
    """

    def __init__(
        self,
        deliveries: Iterable[Delivery],
        *,
        pace: Pace,
        schedule: RetrySchedule,
        signer: Signer,
        receiver: Receiver,
        counts: Counts,
        concurrency: int,
        accepted: Callable[[str, datetime], None] | None = None,
    ) -> None:
        self._pace, self._schedule, self._signer, self._receiver = pace, schedule, signer, receiver
        self.counts, self._concurrency, self._tell_accepted = counts, concurrency, accepted
        # The number keeps those due at the same moment in the order in which they were added.
        self._numbers = count()
        self._waiting: list[tuple[datetime, int, Delivery]] = [
            (delivery.due, next(self._numbers), delivery) for delivery in deliveries
        ]
        heapq.heapify(self._waiting)
        # What an earlier run has delivered was to be delivered, too.
        self._intended = counts.accepted | {delivery.event.id for _, _, delivery in self._waiting}
        self._in_flight = 0
        self._resends_waiting = 0
        self._stopping = False
        self._failure: BaseException | None = None
        self._changed = asyncio.Event()
        self.drained = asyncio.Event()
        """Set while nothing waits and nothing is in flight."""

    async def run(self) -> None:
        """Works until `stop`; returns once no attempt is in flight. A fault of an attempt's own ends it, too."""
        slots = asyncio.Semaphore(self._concurrency)
        attempts: set[asyncio.Task[None]] = set()
        try:
            while True:
                # The slot comes first: what is due is looked at when it can be sent, and not before.
                await slots.acquire()
                delivery = await self._next()
                if delivery is None:
                    break
                task = asyncio.create_task(self._attempt(delivery, slots))
                attempts.add(task)
                task.add_done_callback(attempts.discard)
                task.add_done_callback(self._ended)
            if attempts:
                await asyncio.wait(attempts, timeout=STOP_SECONDS)
        finally:
            for task in attempts:
                task.cancel()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Begins no further attempt."""
        self._stopping = True
        self._changed.set()

    def resend(self, event: SimEvent) -> None:
        """Sends an event once more, now, as a person at the gateway can ask for; raises TooManyResends."""
        if self._resends_waiting >= MAX_RESENDS_WAITING:
            raise TooManyResends
        self._resends_waiting += 1
        if event.id not in self._intended:
            self.counts.extra.add(event.id)
        self._add(Delivery(event, self._pace.now(), "resend"))

    async def _next(self) -> Delivery | None:
        """The next delivery once it is due; None at the stop."""
        while not self._stopping:
            if self._waiting and self._waiting[0][0] <= self._pace.now():
                self._in_flight += 1
                return heapq.heappop(self._waiting)[2]
            if not self._waiting and not self._in_flight:
                self.drained.set()
            self._changed.clear()
            await self._pace.wait(self._waiting[0][0] if self._waiting else None, self._changed)
        return None

    async def _attempt(self, delivery: Delivery, slots: asyncio.Semaphore) -> None:
        try:
            moment = self._pace.now()
            if delivery.first_at is None:
                delivery.first_at = moment
                self._resends_waiting -= delivery.purpose == "resend"
            delivery.made += 1
            event = delivery.event
            key, headers = self._signer.sign(event.id, event.body, moment)
            status = await self._receiver.post(event.body, headers)
            self.counts.statuses[status] += 1
            self.counts.purposes[delivery.purpose] += 1
            self.counts.by_key[key.key_id] += 1
            if 200 <= status < 300:
                self._accepted(delivery)
            else:
                self._refused(delivery, delivery.first_at)
        finally:
            self._in_flight -= 1
            self._changed.set()
            slots.release()

    def _accepted(self, delivery: Delivery) -> None:
        event = delivery.event
        self.counts.accepted.add(event.id)
        if self._tell_accepted is not None:
            self._tell_accepted(event.id, self._pace.now())
        self.counts.accepted_attempts += event.livemode
        if delivery.repeat_after is not None:
            self._add(Delivery(event, self._pace.now() + delivery.repeat_after, "duplicate"))

    def _refused(self, delivery: Delivery, first_at: datetime) -> None:
        offset: timedelta | None = self._schedule.offset(delivery.made)
        if offset is None:
            self.counts.gave_up.add(delivery.event.id)
            return
        delivery.due = first_at + offset
        self._add(delivery)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """What the receiver does is an answer; anything else is a fault that must not pass unseen."""
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._failure = failure
            self.stop()

    def _add(self, delivery: Delivery) -> None:
        self.drained.clear()
        heapq.heappush(self._waiting, (delivery.due, next(self._numbers), delivery))
        self._changed.set()
