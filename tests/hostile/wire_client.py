"""A client that sends what it is told, byte for byte, and reads every answer that comes."""

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass
from types import TracebackType

ANSWER_SECONDS = 60.0
_RESET = struct.pack("ii", 1, 0)


class BadAnswer(AssertionError):
    """Bytes came back that are no HTTP/1.1 answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, lower-case head, body."""

    status: int
    head: bytes
    body: bytes

    @property
    def ends(self) -> bool:
        """Whether the door closes the connection behind it."""
        return b"\r\nconnection: close" in self.head


class WireClient:
    """One connection; a context that closes it.

    Args:
        port: of 127.0.0.1.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> "WireClient":
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def send(self, wire: bytes) -> bool:
        """Sends; false where the door has ended the connection before."""
        assert self._writer is not None
        try:
            self._writer.write(wire)
            await self._writer.drain()
        except ConnectionError:
            return False
        return True

    async def answer(self) -> Answer | None:
        """The next answer; None where the connection ends without one."""
        assert self._reader is not None
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                head = await self._reader.readuntil(b"\r\n\r\n")
                if head.startswith(b"HTTP/1.1 100 "):
                    return await self.answer()
                head = head.lower()
                body = await self._reader.readexactly(_length(head))
        except (asyncio.IncompleteReadError, ConnectionError) as end:
            if isinstance(end, asyncio.IncompleteReadError) and end.partial:
                raise BadAnswer(f"the connection ended within an answer: {end.partial[:100]!r}") from None
            return None
        return Answer(_status(head), head, body)

    async def rest(self) -> list[Answer]:
        """Says that nothing more is sent, and gives every answer until the door closes."""
        assert self._writer is not None
        with contextlib.suppress(OSError):
            self._writer.write_eof()
        found = []
        while (answer := await self.answer()) is not None:
            found.append(answer)
        return found

    async def close(self) -> None:
        """Closes in the polite way."""
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(ConnectionError):
                await self._writer.wait_closed()
            self._writer = None

    async def reset(self) -> None:
        """Closes by a reset: what the door says is not read."""
        assert self._writer is not None
        raw: socket.socket = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        await self.close()


def _status(head: bytes) -> int:
    if not head.startswith(b"http/1.1 ") or not head[9:12].isdigit():
        raise BadAnswer(f"no status line: {head[:100]!r}")
    return int(head[9:12])


def _length(head: bytes) -> int:
    _, found, rest = head.partition(b"\r\ncontent-length: ")
    if not found:
        raise BadAnswer(f"an answer without a length: {head[:200]!r}")
    return int(rest.partition(b"\r\n")[0])
