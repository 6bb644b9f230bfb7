"""The flood: many hostile senders at once on one door, each with a chance of its own, and the books of it all."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from random import Random

from tests.hostile.doors import DoorUnderTest
from tests.hostile.ledger import Ledger
from tests.hostile.sender import Sender
from tests.hostile.wire_attacks import KINDS

SENDERS = 24
LOOK_SECONDS = 0.2


class Flood:
    """Sends until so many requests were begun.

    Args:
        seed: of every sender's chance; the same seed sends the same in each sender's turn.
        marks: called once each when so many requests were begun.
    """

    def __init__(
        self, door: DoorUnderTest, seed: int, requests: int, marks: dict[int, Callable[[], None]] | None = None
    ) -> None:
        self._door, self._seed, self._requests = door, seed, requests
        self._marks = sorted((marks or {}).items())
        self.ledger = Ledger()

    def run(self) -> Ledger:
        """The books when all is sent and answered."""
        asyncio.run(self._run())
        return self.ledger

    async def _run(self) -> None:
        numbers = itertools.count(1)
        watching = asyncio.create_task(self._watch())
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(SENDERS):
                    group.create_task(self._send(number, numbers))
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        """Reads the log, or the door would stand still with a full pipe; calls what is marked."""
        while True:
            self._door.process.log_lines()
            while self._marks and self.ledger.requests >= self._marks[0][0]:
                self._marks.pop(0)[1]()
            await asyncio.sleep(LOOK_SECONDS)

    async def _send(self, number: int, numbers: Iterator[int]) -> None:
        chance = Random(f"{self._seed}/{number}")
        sender = Sender(self._door.port, self._door.key, chance, self.ledger, numbers)
        attacks, weights = list(KINDS), list(KINDS.values())
        while self.ledger.requests < self._requests and len(self.ledger.faults) < 20:
            (attack,) = chance.choices(attacks, weights)
            await attack(sender)
        await sender.leave()
