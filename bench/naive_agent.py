"""The Faust agent that everyone would write first: one event at a time, table write, then send. The guard's baseline.

Usage: python -m bench.naive_agent BOOTSTRAP PREFIX PARTITIONS DATA_DIR; runs until SIGTERM.
"""

import sys
from typing import Any

import faust

from schemas.topics import TopicNames


def build(bootstrap: str, prefix: str, partitions: int, data_dir: str) -> Any:
    """A plain app on the same topics and the same headers, with Faust's own settings but for raw bytes."""
    names = TopicNames(prefix)
    app = faust.App(
        f"{prefix}.naive",
        broker=f"kafka://{bootstrap}",
        store="memory://",
        datadir=data_dir,
        key_serializer="raw",
        value_serializer="raw",
        topic_partitions=partitions,
        topic_disable_leader=True,
        web_enabled=False,
        autodiscover=False,
    )
    events = app.topic(names.events, key_type=bytes, value_type=bytes, partitions=partitions)
    out = app.topic(names.state_changes, key_type=bytes, value_type=bytes, partitions=partitions)
    table = app.Table("objects", partitions=partitions, key_type=bytes, value_type=bytes)

    async def pass_on(stream: Any) -> None:
        async for event in stream.events():
            headers = dict(event.message.headers)
            key, version = event.message.key, int(headers["ce_version"])
            known = table.get(key)
            verdict = b"advanced" if known is None or version > int(known) else b"late"
            if verdict == b"advanced":
                table[key] = b"%d" % version
            await out.send(key=key, value=event.message.value, headers=headers | {"ce_verdict": verdict})

    app.agent(events, concurrency=1)(pass_on)
    return app


def main(bootstrap: str, prefix: str, partitions: str, data_dir: str) -> None:
    """Runs the worker with Faust's own command line settings, log level info."""
    app = build(bootstrap, prefix, int(partitions), data_dir)
    app.finalize()
    faust.Worker(app, loglevel="INFO", quiet=True).execute_from_commandline()


if __name__ == "__main__":
    main(*sys.argv[1:])
