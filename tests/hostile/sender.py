"""One hostile sender of the flood: its chance, its connection, its numbers, and the books that it writes to."""

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from tallyhook.gateway.signing import SigningKey
from tests.hostile import absurd
from tests.hostile.ledger import Ledger
from tests.hostile.signed import Headers, sign
from tests.hostile.wire_client import Answer, WireClient
from tests.integration.ingress.events import event

REMEMBERED = 200


@dataclass
class Sender:
    """Sends one thing after the other, on a connection that it keeps as long as the door does.

    Args:
        numbers: of messages and objects, shared by all senders.
    """

    port: int
    key: SigningKey
    chance: Random
    ledger: Ledger
    numbers: Iterator[int] = field(default_factory=itertools.count)
    sent: deque[tuple[bytes, Headers]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _kept: WireClient | None = None

    def sound(self) -> tuple[bytes, Headers]:
        """An event of its own, signed."""
        number = next(self.numbers)
        body = event(f"evt_{number}", f"dep_{number}", entity={"note": "n" * self.chance.choice((0, 10, 2_000))})
        return body, sign(self.key, body, number)

    def absurd(self) -> tuple[bytes, Headers]:
        """A bent event, signed as it is."""
        number = next(self.numbers)
        body = absurd.body(self.chance, number)
        return body, sign(self.key, body, number)

    async def ask(self, wire: bytes) -> Answer | None:
        """One request on the kept connection, a new one where the door has ended it."""
        self.ledger.requests += 1
        client = self._kept
        if client is None:
            client = self._kept = await WireClient(self.port).__aenter__()
        answer = await client.answer() if await client.send(wire) else None
        if answer is None or answer.ends:
            await self.leave()
        return answer

    async def leave(self) -> None:
        """Gives up the kept connection."""
        if self._kept is not None:
            await self._kept.close()
            self._kept = None

    async def alone(self, wire: bytes, requests: int = 1) -> list[Answer]:
        """Bytes on a connection of their own, and all that comes back."""
        self.ledger.requests += requests
        async with WireClient(self.port) as client:
            await client.send(wire)
            return await client.rest()
