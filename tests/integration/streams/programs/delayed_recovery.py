"""Workers whose recovery takes its time before it resumes the flow (faust-streaming/faust#596).

Usage: python -m tests.integration.streams.programs.delayed_recovery (product | stock | repaired). The fault is a race;
the delay makes it certain. `stock` is a plain agent on plain Faust, `repaired` the same agent on the repaired app,
`product` the whole worker.
"""

import asyncio
import sys
from functools import partial
from typing import Any

import faust
from faust.transport import consumer as transport

from schemas.topics import TopicNames
from streams.ending import end_process
from streams.faust_repairs import RepairedApp
from tallyhook.settings import Settings, load
from tests.integration.streams.programs import product

DELAY_SECONDS = 3.0


def delay_the_seek() -> None:
    """Every seek at the end of a recovery waits before and after, so that whatever may fetch meanwhile does."""
    seek = transport.Consumer.perform_seek

    async def slow(self: Any) -> None:
        await asyncio.sleep(DELAY_SECONDS / 2)
        await seek(self)
        await asyncio.sleep(DELAY_SECONDS / 2)

    transport.Consumer.perform_seek = slow


def plain(settings: Settings, *, repaired: bool) -> Any:
    """An agent that passes every event on, with a table to recover."""
    names, partitions = TopicNames(settings.installation.topic_prefix), settings.installation.partitions
    make = faust.App
    if repaired:
        make = partial(RepairedApp, commit_notes={}, fetch_min_bytes=1, on_position_lost=end_process)
    app = make(
        settings.installation.group_id("streams"),
        broker=f"kafka://{settings.kafka.bootstrap}",
        datadir=str(settings.stream.data_dir),
        store="memory://",
        key_serializer="raw",
        value_serializer="raw",
        topic_partitions=partitions,
        topic_disable_leader=True,
        stream_wait_empty=True,
        web_enabled=False,
        autodiscover=False,
    )
    events = app.topic(names.events, key_type=bytes, value_type=bytes, partitions=partitions)
    out = app.topic(names.state_changes, key_type=bytes, value_type=bytes, partitions=partitions)
    table = app.Table("objects", partitions=partitions, key_type=bytes, value_type=bytes)

    async def pass_on(stream: Any) -> None:
        first = True
        async for event in stream.events():
            if first:  # a slow start: what is fetched during the recovery still waits in the queue when it ends
                await asyncio.sleep(DELAY_SECONDS + 1)
                first = False
            table[event.message.key] = event.message.value
            message = event.message
            place = {"ce_sourcepartition": b"%d" % message.partition, "ce_sourceoffset": b"%d" % message.offset}
            await out.send(key=message.key, value=message.value, headers=place)

    app.agent(events, concurrency=1)(pass_on)
    app.finalize()
    return app


def main(kind: str) -> None:
    """Runs until SIGTERM."""
    delay_the_seek()
    if kind == "product":
        product.main()
    settings = load()
    settings.stream.data_dir.mkdir(parents=True, exist_ok=True)
    faust.Worker(plain(settings, repaired=kind == "repaired"), loglevel="INFO", quiet=True).execute_from_commandline()


if __name__ == "__main__":
    main(sys.argv[1])
