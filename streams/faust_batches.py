"""How the agent takes its events: in batches that are acked once they are done, in place of Faust's `take_events`."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, NoReturn, cast

from faust.types import TP

from tallyhook.failpoints import reach


async def batches(
    stream: Any, *, most_events: int, most_bytes: int, idle_seconds: float, on_hole: Callable[[str], NoReturn]
) -> AsyncIterator[list[Any]]:
    """Yields lists of events and acks a list once its body has returned; an empty list when nothing comes for a while.

    `take_events` acks in `finally`, so that an exception acks what was not done (faust-streaming/faust#315, #527). Here
    it acks nothing. Events of an older generation are left out: they come again after the rebalance.

    Args:
        stream: the agent's stream.
        most_events: of one list.
        most_bytes: of the values of one list, the last one aside.
        idle_seconds: after so long without an event an empty list is yielded.
        on_hole: ends the process when an offset does not follow, before anything is acked past it.
    """
    app, queue = stream.app, stream.channel.queue
    consumer, following, generation = app.consumer, cast("dict[TP, int]", {}), -1
    unacked = consumer._unacked_messages  # the stop waits until these are acked (setting stream_wait_empty)
    while not stream.should_stop:
        try:
            event = await _next_event(queue, idle_seconds)
        except StopAsyncIteration:  # how Faust ends a stream
            return
        if event is None:
            yield []
            continue
        active, current = app.flow_control.is_active(), app.consumer_generation_id
        if current != generation:
            generation = current
            following.clear()
        events: list[Any] = []
        size = 0
        while True:
            message = event.message
            if active and message.generation_id == generation and _follows(consumer, following, message, on_hole):
                message.tracked = True
                unacked.add(message)
                events.append(event)
                size += len(message.value or b"")
            if len(events) >= most_events or size >= most_bytes or queue.empty():
                break
            event = queue.get_nowait()
        if events:
            yield events
            for event in events:  # no await between: they are acked as one
                event.ack()
            reach("stream.acked")
        await asyncio.sleep(0)


async def _next_event(queue: Any, seconds: float) -> Any:
    """The next of a queue, or None when none comes in time.

    Not `asyncio.wait_for`, which forgets that it was cancelled when an event comes at the same moment.
    """
    getting = asyncio.ensure_future(queue.get())
    try:
        await asyncio.wait({getting}, timeout=seconds)
    finally:
        getting.cancel()  # does nothing to one that is done; a waiting one leaves its event in the queue
    await asyncio.wait({getting})
    return None if getting.cancelled() else getting.result()


def _follows(consumer: Any, following: dict[TP, int], message: Any, on_hole: Callable[[str], NoReturn]) -> bool:
    """Whether a record is the next of its partition; false for one that was taken before or comes before the seek."""
    tp, offset = message.tp, message.offset
    expected = following.get(tp)
    if expected is None:
        expected = consumer.starts.get(tp)
    if expected is None or offset < expected:
        return False
    if offset > expected and consumer.bridges.pop((tp, expected), None) != offset:
        on_hole(f"{tp.topic}[{tp.partition}]: offset {expected} expected, {offset} received")
    following[tp] = offset + 1
    return True
