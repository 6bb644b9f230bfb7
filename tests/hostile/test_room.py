"""Room: what all senders together may hold, and who gives way when there is none left."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from ingress.held_bytes import HeldBytes
from ingress.limits import Limits
from ingress.messages import ACCEPTED, Head, Request, Response
from ingress.refusals import Refused, response_of
from ingress.request_reader import RequestReader
from ingress.server import Server
from tests.hostile.test_header_lines import BODY, LIMITS, SOUND, Lets, wire_of
from tests.hostile.wire_client import WireClient

SMALL = replace(LIMITS, max_held_bytes=1_000)


class Waits:
    """Lets everything in; answers a body that begins with `w` once there is leave."""

    def __init__(self) -> None:
        self.leave, self.asked = asyncio.Event(), asyncio.Event()
        self.inside = 0

    def early(self, head: Head) -> Response | None:
        """Webhooks only."""
        if head.path != "/webhooks":
            return response_of("not_found")
        self.inside += 1
        return None

    def max_body_bytes(self, head: Head) -> int:
        """More than all may hold together here."""
        return 10_000 if head.path == "/webhooks" else 0

    async def answer(self, request: Request) -> Response:
        """At once, or when there is leave."""
        self.asked.set()
        if request.body.startswith(b"w"):
            await self.leave.wait()
        return ACCEPTED

    def refused(self, refusal: Refused) -> Response:
        """The answer of the reason."""
        return response_of(refusal.reason, close=True)

    def left(self) -> None:
        """One is over."""
        self.inside -= 1


@asynccontextmanager
async def serving(
    handler: Waits, *, limits: Limits = SMALL, max_connections: int = 100
) -> AsyncIterator[tuple[Server, int]]:
    """A server on a free port, in which nothing may be left at the end."""
    server = Server(handler, limits, max_connections=max_connections)
    port = await server.start("127.0.0.1", 0)
    yield server, port
    handler.leave.set()
    await server.stop(5.0)
    assert (server.held.bytes, handler.inside) == (0, 0)


def post(length: int, sent: bytes) -> bytes:
    """A request whose body is on its way."""
    return b"POST /webhooks HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (length, sent)


async def until(server: Server, count: int) -> None:
    """Waits until the server holds so many bytes."""
    async with asyncio.timeout(10):
        while server.held.bytes != count:  # noqa: ASYNC110  the server tells nobody how much it holds
            await asyncio.sleep(0.001)


async def status(client: WireClient) -> int:
    """Of the next answer; 0 where the connection ends."""
    answer = await client.answer()
    return 0 if answer is None else answer.status


async def test_the_slowest_body_gives_way() -> None:
    """All bodies together are bounded: the one that is longest on its way is told to come again."""
    async with serving(Waits()) as (server, port), WireClient(port) as first, WireClient(port) as second:
        await first.send(post(600, b"x" * 500))
        await until(server, 500)
        await second.send(post(600, b"x" * 500))
        await until(server, 1_000)
        async with WireClient(port) as third:
            await third.send(post(400, b"x" * 400))
            assert await status(third) == 200
        answer = await first.answer()
        assert answer is not None
        assert (answer.status, b"retry-after" in answer.head) == (503, True)
        await second.send(b"x" * 100)
        assert await status(second) == 200


async def test_a_body_in_pieces_does_not_give_way_to_itself() -> None:
    """It alone may not be more than all together: it is refused, and what it held is given back."""
    async with serving(Waits()) as (server, port), WireClient(port) as client:
        await client.send(post(2_000, b"x" * 900))
        await until(server, 900)
        await client.send(b"x" * 200)
        assert await status(client) == 503


async def test_a_whole_request_gives_way_to_nobody() -> None:
    """While Kafka is slow, later ones are told to come again; the one that waits is answered."""
    handler = Waits()
    async with serving(handler) as (server, port), WireClient(port) as first, WireClient(port) as second:
        await first.send(post(900, b"w" * 900))
        await asyncio.wait_for(handler.asked.wait(), 10)
        await second.send(post(500, b"x" * 500))
        assert await status(second) == 503
        assert server.held.bytes == 900
        handler.leave.set()
        assert await status(first) == 200


async def test_a_vanished_sender_gives_back_what_it_held() -> None:
    """In the middle of its body, and while its request is under way."""
    handler = Waits()
    async with serving(handler) as (server, port):
        async with WireClient(port) as client:
            await client.send(post(600, b"x" * 500))
            await until(server, 500)
        await until(server, 0)
        async with WireClient(port) as client:
            await client.send(post(500, b"w" * 500) + post(300, b"w" * 300))
            await until(server, 800)
        handler.leave.set()
        await until(server, 0)


async def test_a_new_connection_takes_the_place_of_one_that_waits() -> None:
    """The one that has kept the door waiting longest; one whose request is under way stays."""
    handler = Waits()
    async with (
        serving(handler, max_connections=3) as (_, port),
        WireClient(port) as busy,
        WireClient(port) as kept,
        WireClient(port) as silent,
    ):
        await busy.send(post(5, b"wait!"))
        await asyncio.wait_for(handler.asked.wait(), 10)
        await silent.send(b"POST /webhooks HTTP/1.1\r\n")
        # Older than the silent one, but it has just been answered.
        await kept.send(post(2, b"ok"))
        assert await status(kept) == 200
        async with WireClient(port) as new:
            await new.send(post(2, b"ok"))
            assert await status(new) == 200
            assert await status(silent) == 0
            await kept.send(post(2, b"ok"))
            assert await status(kept) == 200
            handler.leave.set()
            assert await status(busy) == 200


async def test_where_every_connection_is_under_way_a_new_one_is_told_so() -> None:
    """And with very many at once, the further ones just end: what is told them is bounded, too."""
    handler = Waits()
    async with serving(handler, max_connections=1) as (_, port), WireClient(port) as busy:
        await busy.send(post(5, b"wait!"))
        await asyncio.wait_for(handler.asked.wait(), 10)
        crowd = [WireClient(port) for _ in range(150)]
        try:
            for one in crowd:
                await one.__aenter__()
            found = [await status(one) for one in crowd]
        finally:
            for one in crowd:
                await one.close()
        assert set(found) == {503, 0}
        assert found.count(503) <= 64
        handler.leave.set()
        assert await status(busy) == 200


@pytest.mark.parametrize("body_bytes", [1, 16_000, 100_000, 262_000])
def test_the_next_head_may_come_with_the_end_of_a_large_body(body_bytes: int) -> None:
    """One read can bring both: what belongs to the body does not count against the head behind it."""
    handler = Lets()
    reader = RequestReader(LIMITS, handler, lambda: None)
    large = b"POST /webhooks HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (body_bytes, b"x" * body_bytes)

    reader.feed(large + wire_of(SOUND)[:40])
    reader.feed(wire_of(SOUND)[40:])

    assert handler.refusals == []
    assert [len(arrival.request.body) for arrival in reader.arrivals if arrival.request] == [body_bytes, len(BODY)]


def test_a_head_without_an_end_is_bounded() -> None:
    """Also where it comes in one read: little more than the limit is ever parsed."""
    for wire in (b"POST /" + b"x" * 500_000, b"POST / HTTP/1.1\r\nx: " + b"y" * 500_000):
        handler = Lets()
        reader = RequestReader(LIMITS, handler, lambda: None)
        sent = 0
        while reader.phase != "ended":
            reader.feed(wire[sent : sent + 1_000])
            sent += 1_000
        assert handler.refusals == ["headers_too_large"]
        assert sent <= LIMITS.max_header_bytes + 16_384 + 1_000


def test_small_chunks_hold_no_more_than_their_bytes() -> None:
    """A body in chunks of two bytes: one buffer, and no list of pieces with thirty times its size."""
    handler = Lets()
    reader = RequestReader(LIMITS, handler, lambda: None)
    wire = b"POST /webhooks HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n" + b"2\r\nab\r\n" * 100_000
    tracemalloc.start()
    try:
        reader.feed(wire)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert handler.inside == 1
    assert held < 500_000
    reader.drop()


def test_the_books_of_what_is_held() -> None:
    """Room is made as long as there is somebody to give way."""
    given: list[int] = []

    def make_room() -> bool:
        if len(given) == 2:
            return False
        given.append(40)
        held.give_back(40)
        return True

    held = HeldBytes(100, make_room)
    held.take(100)
    held.take(80)
    assert (held.bytes, given) == (100, [40, 40])
    with pytest.raises(Refused):
        held.take(1)
    assert held.bytes == 100
