"""Writes records as Kafka takes them from anybody: with a header name that is not UTF-8.

Usage: python -m tests.integration.streams.programs.foreign_writer BOOTSTRAP TOPIC PARTITION (none | gzip). Clients do
not offer it: the name is a str that encodes itself to other bytes, which aiokafka's plain Python builder takes over.
"""

import asyncio
import os
import sys

os.environ["AIOKAFKA_NO_EXTENSIONS"] = "1"

from aiokafka import AIOKafkaProducer

VALUES = (b"before", b"odd", b"after")


class Odd(str):
    """A header's name."""

    __slots__ = ()

    def encode(self, *_: str) -> bytes:
        """Not what it says."""
        return b"x-\xff"


async def write(bootstrap: str, topic: str, partition: int, compression: str | None) -> None:
    """Three records in one batch, the second with the odd name."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, compression_type=compression, linger_ms=200)
    await producer.start()
    try:
        sent = [
            await producer.send(
                topic, value, key=b"dep_foreign", partition=partition, headers=[(name, b"1"), ("x-plain", b"2")]
            )
            for value, name in zip(VALUES, ("x-a", Odd("odd"), "x-b"), strict=True)
        ]
        await asyncio.gather(*sent)
    finally:
        await producer.stop()


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], sys.argv[2], int(sys.argv[3]), None if sys.argv[4] == "none" else sys.argv[4]))
