"""Waiting for events with patience loses none."""

import asyncio
import random

import pytest
from mode.utils.queues import FlowControlEvent, ThrowableQueue

from streams.faust_batches import _next_event

EVENTS = 2000


def test_no_event_is_lost_however_often_the_patience_ends() -> None:
    """Timeouts fall upon arrivals, and every event comes once, in order."""

    async def through() -> tuple[list[int], int]:
        queue: ThrowableQueue[int] = ThrowableQueue(flow_control=FlowControlEvent(initially_suspended=False))
        chance, idle = random.Random(5), 0
        found: list[int] = []

        async def write() -> None:
            for number in range(EVENTS):
                if chance.random() < 0.3:
                    await asyncio.sleep(chance.choice((0, 0.0005, 0.001)))
                queue.put_nowait(number)

        writing = asyncio.ensure_future(write())
        while len(found) < EVENTS:
            event = await _next_event(queue, 0.0005)
            if event is None:
                idle += 1
            else:
                found.append(event)
        await writing
        return found, idle

    found, idle = asyncio.run(through())
    assert found == list(range(EVENTS))
    assert idle > 0


def test_the_end_of_the_stream_is_passed_on() -> None:
    """Faust ends a stream by an exception in its queue, to one who waits and to one who comes later."""

    async def ended(*, waits: bool) -> None:
        queue: ThrowableQueue[int] = ThrowableQueue(flow_control=FlowControlEvent(initially_suspended=False))
        getting = asyncio.ensure_future(_next_event(queue, 30)) if waits else None
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await queue.throw(StopAsyncIteration())
        await (getting or _next_event(queue, 30))

    for waits in (True, False):
        with pytest.raises(StopAsyncIteration):
            asyncio.run(ended(waits=waits))


def test_who_is_cancelled_stops_waiting() -> None:
    """Else a stop of the worker would hang; an event stays in the queue."""

    async def cancelled() -> int:
        queue: ThrowableQueue[int] = ThrowableQueue(flow_control=FlowControlEvent(initially_suspended=False))
        getting = asyncio.ensure_future(_next_event(queue, 30))
        await asyncio.sleep(0.01)
        getting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await getting
        queue.put_nowait(7)
        return int(await _next_event(queue, 30))

    assert asyncio.run(cancelled()) == 7
