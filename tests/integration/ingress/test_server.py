"""The server by itself, on real sockets: too many connections, errors of ours, senders that do not read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ingress.limits import Limits
from ingress.messages import ACCEPTED, Head, Request, Response
from ingress.refusals import Refused, response_of
from ingress.server import Server

MAX_BODY_BYTES = 1000
LIMITS = Limits(
    max_headers=64,
    max_header_bytes=16_384,
    body_timeout_seconds=5,
    head_timeout_seconds=0.5,
    idle_timeout_seconds=0.5,
    linger_seconds=0.5,
)
POST = b"POST /webhooks HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b"
LARGE = Response(200, b"x" * 200_000)


class Handler:
    """Answers by the body: `boom` meets an error of ours, `wait` waits for leave."""

    def __init__(self) -> None:
        self.inside = self.answered = 0
        self.leave, self.entered, self.emptied = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def early(self, head: Head) -> Response | None:
        """`/large` needs no body."""
        if head.path == "/large":
            self.answered += 1
            return LARGE
        self.inside += 1
        self.entered.set()
        return None

    def max_body_bytes(self, head: Head) -> int:
        """None for any other path than the one that lets in."""
        return MAX_BODY_BYTES if head.path == "/webhooks" else 0

    async def answer(self, request: Request) -> Response:
        """By the body."""
        if request.body == b"boom":
            raise ZeroDivisionError
        if request.body == b"wait":
            await self.leave.wait()
        self.answered += 1
        return ACCEPTED

    def refused(self, refusal: Refused) -> Response:
        """The refusal's own answer."""
        return response_of(refusal.reason, close=True)

    def left(self) -> None:
        """One is over."""
        self.inside -= 1
        if not self.inside:
            self.emptied.set()


@asynccontextmanager
async def serving(handler: Handler, *, max_connections: int = 100) -> AsyncIterator[tuple[Server, int]]:
    """A server on a free port."""
    server = Server(handler, LIMITS, max_connections=max_connections)
    port = await server.start("127.0.0.1", 0)
    yield server, port
    await server.stop(2.0)


async def exchange(port: int, request: bytes) -> bytes:
    """Everything that comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(20):
        answer = await reader.read()
    writer.close()
    return answer


async def test_an_error_of_ours_is_503_and_harms_nobody_else() -> None:
    """The sender repeats it, the log has the traceback, the next request is served."""
    handler = Handler()
    async with serving(handler) as (_, port):
        assert (await exchange(port, POST % (4, b"boom"))).startswith(b"HTTP/1.1 503 ")
        assert (await exchange(port, POST % (2, b"ok"))).startswith(b"HTTP/1.1 200 ")
    assert handler.inside == 0


async def test_more_connections_than_allowed_are_told_to_come_again() -> None:
    """503 and the end of the connection; those that were there before go on."""
    handler = Handler()
    async with serving(handler, max_connections=1) as (_, port):
        first = asyncio.create_task(exchange(port, POST % (4, b"wait")))
        await asyncio.wait_for(handler.entered.wait(), 10)
        assert (await exchange(port, b"")).startswith(b"HTTP/1.1 503 ")
        handler.leave.set()
        assert (await first).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("request_bytes", "expected"),
    [(b"", b""), (b"POST /webhooks HTTP/1.1\r\nHost", b"HTTP/1.1 400 "), (POST % (1, b"x"), b"HTTP/1.1 200 ")],
    ids=["silent", "half a head", "kept and idle"],
)
async def test_a_connection_that_does_nothing_ends(request_bytes: bytes, expected: bytes) -> None:
    """Silent from the start, in the middle of its headers, or after an answer."""
    async with serving(Handler()) as (_, port):
        began = asyncio.get_running_loop().time()
        assert (await exchange(port, request_bytes)).startswith(expected)
        assert asyncio.get_running_loop().time() - began < 5


async def test_a_sender_that_does_not_read_its_answers_is_cut_off() -> None:
    """What waits for it is bounded: further requests are not begun, and after a while the connection is ended."""
    handler = Handler()
    async with serving(handler) as (_, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)

        async def ask_without_reading() -> None:
            while True:
                writer.write(b"GET /large HTTP/1.1\r\n\r\n" * 30)
                await writer.drain()

        with pytest.raises(ConnectionError):
            await asyncio.wait_for(ask_without_reading(), 20)
        assert handler.answered < 1000
        writer.close()


async def test_a_vanished_sender_leaves_no_request_behind() -> None:
    """Half of a body, and a request whose answer nobody takes."""
    handler = Handler()
    async with serving(handler) as (_, port):
        for request in (POST % (9, b"half"), POST % (4, b"wait")):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            await writer.drain()
            await asyncio.wait_for(handler.entered.wait(), 10)
            writer.transport.abort()
            handler.leave.set()
            await asyncio.wait_for(handler.emptied.wait(), 10)
            for flag in (handler.entered, handler.emptied, handler.leave):
                flag.clear()
