"""The kinds of the flood that are about framing and connections."""

import asyncio
import contextlib

from tests.hostile.attacks import (
    Attack,
    altered_body,
    authentic_and_absurd,
    bent_bytes,
    encoded,
    header_flood,
    largest,
    other_method,
    other_path,
    repeated_proof,
    replayed,
    replayed_late,
    sound,
    spoiled_proof,
    too_large,
)
from tests.hostile.ledger import digest
from tests.hostile.sender import Sender
from tests.hostile.signed import chunks, wire
from tests.hostile.wire_client import WireClient

CHUNKED = b"transfer-encoding: chunked\r\n"
SLOW_BODIES_AT_ONCE = 3
SLOW_STEP_SECONDS = 0.2


async def chunked(sender: Sender) -> None:
    """An authentic body in chunks of all shapes."""
    body, headers = sender.sound()
    raw = wire(body, headers, framing=CHUNKED, framed=chunks(sender.chance, body))
    sender.ledger.authentic("chunked", body, await sender.ask(raw))


async def broken_chunks(sender: Sender) -> None:
    """Sizes that are none, too great, signed or followed by too little; a body that is only framing."""
    body, headers = sender.sound()
    size = b"%x" % len(body)
    framed = sender.chance.choice(
        (
            *(
                b"-1\r\n",
                b"0x5\r\nabcde\r\n0\r\n\r\n",
                b"\r\n",
                b"g\r\n",
                b"+5\r\nabcde\r\n0\r\n\r\n",
                b" 5\r\nabcde\r\n",
            ),
            *(b"ffffffffffffffffff\r\n", size + b"\n" + body + b"\n0\n\n", size + b"\r\n" + body + b"xx0\r\n\r\n"),
            *(b"1;" + b"e" * 80_000 + b"\r\na\r\n0\r\n\r\n", b"0\r\n" + b"t: 1\r\n" * 20_000 + b"\r\n"),
        )
    )
    answers = await sender.alone(wire(body, headers, framing=CHUNKED, framed=framed))
    # Trailers without end are bounded as headers are; a chunk that never ends is an end before its time.
    if answers:
        sender.ledger.expect("broken chunks", answers[0], 400, 401)
    else:
        sender.ledger.note("broken chunks", None)


async def two_lengths(sender: Sender) -> None:
    """Length beside transfer coding, two lengths: what hides behind must not be reached, authentic as it is."""
    body, headers = sender.sound()
    hidden, hidden_headers = sender.sound()
    length = b"content-length: %d\r\n" % len(body)
    framing = sender.chance.choice(
        (
            *(length + CHUNKED, CHUNKED + length, length + b"content-length: 3\r\n", length + length),
            *(
                CHUNKED + b"transfer-encoding: identity\r\n",
                b"transfer-encoding: xchunked\r\n",
                b"content-length: +3\r\n",
            ),
            *(b"content-length: 3, 3\r\n", b"transfer-encoding : chunked\r\n" + length, b"content-length: 0x3\r\n"),
        )
    )
    raw = wire(body, headers, framing=framing, framed=b"0\r\n\r\n" + wire(hidden, hidden_headers))
    answers = await sender.alone(raw, requests=2)
    sender.ledger.expect("two lengths", answers[0] if answers else None, 400)
    if len(answers) > 1:
        sender.ledger.faults.append(f"two lengths: a hidden request was answered {answers[1].status}")


async def pipelined(sender: Sender) -> None:
    """Several in one segment: each has its answer, in order."""
    sent = [sender.sound() for _ in range(sender.chance.randint(2, 8))]
    answers = await sender.alone(b"".join(wire(*one) for one in sent), requests=len(sent))
    for number, (body, _) in enumerate(sent):
        sender.ledger.authentic("pipelined", body, answers[number] if number < len(answers) else None)


async def pipelined_without_end(sender: Sender) -> None:
    """More ahead of their answers than is allowed."""
    answers = await sender.alone(b"GET /nowhere HTTP/1.1\r\n\r\n" * 200)
    sender.ledger.requests += len(answers) - 1
    for answer in answers:
        sender.ledger.expect("pipelined without end", answer, 400, 404)


async def early_close(sender: Sender) -> None:
    """Gone in the middle: a half body is never stored, a whole one may be."""
    body, headers = sender.sound()
    raw = wire(body, headers)
    whole = sender.chance.random() < 0.4
    sender.ledger.requests += 1
    async with WireClient(sender.port) as client:
        await client.send(raw if whole else raw[: sender.chance.randrange(1, len(raw) - 1)])
        if whole:
            sender.ledger.open[digest(body)] += 1
        if sender.chance.random() < 0.5:
            await client.reset()
    sender.ledger.note("early close", None)


async def no_http(sender: Sender) -> None:
    """Other protocols, and noise."""
    raw = sender.chance.choice(
        (
            *(
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                b"GET /webhooks\r\n\r\n",
            ),
            *(b"\x00" * 300, b"\r\n" * 300, b"HTTP/1.1 200 OK\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"SSH-2.0-x\r\n"),
            *(b"POST  /webhooks HTTP/1.1\r\n\r\n", b"POST /webhooks HTTP/1.1\r\n : x\r\n\r\n", b"* * *\r\n\r\n"),
            *(sender.chance.randbytes(sender.chance.choice((1, 50, 3_000))), b"A" * 100_000),
        )
    )
    answers = await sender.alone(raw)
    sender.ledger.note("no HTTP", answers[0] if answers else None)
    if any(answer.status == 200 for answer in answers):
        sender.ledger.faults.append(f"no HTTP: 200 for {raw[:60]!r}")


async def asks_first(sender: Sender) -> None:
    """Expect: 100-continue and an offer of another protocol, with an authentic body."""
    body, headers = sender.sound()
    extra = sender.chance.choice(
        ({"expect": "100-continue"}, {"connection": "upgrade", "upgrade": "h2c"}, {"expect": "200-maybe"})
    )
    sender.ledger.authentic("asks first", body, await sender.ask(wire(body, headers | extra)))


_slow = asyncio.Semaphore(SLOW_BODIES_AT_ONCE)


async def slow_body(sender: Sender) -> None:
    """Byte after byte, until the door has had enough."""
    body, headers = sender.sound()
    raw = wire(body, headers)
    if _slow.locked():
        await sound(sender)
        return
    async with _slow, WireClient(sender.port) as client:
        sender.ledger.requests += 1
        answering = asyncio.create_task(client.answer())
        await client.send(raw[:-50])
        for byte in raw[-50:-1]:
            if answering.done() or not await client.send(bytes([byte])):
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(answering), SLOW_STEP_SECONDS)
        sender.ledger.expect("slow body", await answering, 400)


async def pages(sender: Sender) -> None:
    """The health pages, whatever comes with the request."""
    path, method = (
        sender.chance.choice(("/livez", "/readyz", "/metrics")),
        sender.chance.choice(("GET", "HEAD", "POST")),
    )
    raw = f"{method} {path}?x=1 HTTP/1.1\r\nx: y\r\ncontent-length: 3\r\n\r\nabc".encode()
    sender.ledger.requests += 1
    async with WireClient(sender.port) as client:
        await client.send(raw if method != "HEAD" else raw.replace(b"HEAD", b"GET"))
        answer = await client.answer()
    sender.ledger.expect("pages", answer, *((405,) if method == "POST" else (200,)))


KINDS: dict[Attack, int] = {
    sound: 72,
    authentic_and_absurd: 64,
    replayed: 24,
    replayed_late: 20,
    altered_body: 32,
    spoiled_proof: 32,
    repeated_proof: 16,
    bent_bytes: 40,
    other_method: 8,
    other_path: 12,
    encoded: 4,
    header_flood: 8,
    too_large: 4,
    largest: 4,
    chunked: 20,
    broken_chunks: 8,
    two_lengths: 12,
    pipelined: 8,
    pipelined_without_end: 1,
    early_close: 16,
    no_http: 12,
    asks_first: 8,
    slow_body: 4,
    pages: 4,
}
"""How often each is chosen, by weight."""
