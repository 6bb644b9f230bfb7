"""The kinds of the flood, each with what the door must answer; those about connections stand in `wire_attacks`."""

import http
from collections.abc import Awaitable, Callable

from tests.hostile.ledger import digest
from tests.hostile.sender import Sender
from tests.hostile.signed import PATHS, bend, sign, spoil, wire

Attack = Callable[[Sender], Awaitable[None]]

MAX_BODY_BYTES = 262_144


async def sound(sender: Sender) -> None:
    """An honest webhook in between."""
    body, headers = sender.sound()
    answer = await sender.ask(wire(body, headers, path=sender.chance.choice(PATHS)))
    sender.ledger.authentic("sound", body, answer)
    sender.sent.append((body, headers))


async def authentic_and_absurd(sender: Sender) -> None:
    """Signed, and no event that anybody can use, most of the time."""
    body, headers = sender.absurd()
    sender.ledger.authentic("authentic and absurd", body, await sender.ask(wire(body, headers)))
    sender.sent.append((body, headers))


async def replayed(sender: Sender) -> None:
    """What somebody overheard, within the tolerance: taken again, and a redelivery behind the door."""
    if sender.sent:
        body, headers = sender.chance.choice(sender.sent)
        sender.ledger.authentic("replayed", body, await sender.ask(wire(body, headers)))


async def replayed_late(sender: Sender) -> None:
    """What somebody overheard long ago, or what is signed for a time that has not come."""
    body, _ = sender.sound()
    age_seconds = sender.chance.choice((310, 1_000, 86_400, 10**8, -400, -(10**9)))
    headers = sign(sender.key, body, next(sender.numbers), age_seconds=age_seconds)
    sender.ledger.expect("replayed late", await sender.ask(wire(body, headers)), 401)


async def altered_body(sender: Sender) -> None:
    """One bit, one byte more, or another body under a good proof."""
    body, headers = sender.sound()
    at = sender.chance.randrange(len(body))
    flipped = body[:at] + bytes([body[at] ^ (1 << sender.chance.randrange(8))]) + body[at + 1 :]
    other = sender.chance.choice((flipped, body + b" ", b" " + body, body[:-1], b"", sender.sound()[0]))
    sender.ledger.expect("altered body", await sender.ask(wire(other, headers)), 401)


async def spoiled_proof(sender: Sender) -> None:
    """Headers left out, empty, huge, in another encoding or version."""
    body, headers = sender.sound()
    answer = await sender.ask(wire(body, spoil(sender.chance, headers)))
    sender.ledger.expect("spoiled proof", answer, 401)


async def repeated_proof(sender: Sender) -> None:
    """One of the three headers twice, in whatever case."""
    body, headers = sender.sound()
    name = sender.chance.choice(sorted(headers))
    twice = headers | {sender.chance.choice((name.upper(), name.title())): headers[name]}
    sender.ledger.expect("repeated proof", await sender.ask(wire(body, twice)), 401)


async def bent_bytes(sender: Sender) -> None:
    """A good request with bytes changed anywhere: only one whose body came through whole may be taken."""
    body, headers = sender.sound()
    answers = await sender.alone(bend(sender.chance, wire(body, headers)))
    sender.ledger.note("bent bytes", answers[0] if answers else None)
    for answer in answers[1:]:
        sender.ledger.note("bent bytes, then", answer)
    taken = sum(answer.status == 200 for answer in answers)
    if taken > 1:
        sender.ledger.faults.append("bent bytes: taken twice")
    sender.ledger.answered[digest(body)] += taken
    if any(answer.status == 503 for answer in answers):
        sender.ledger.open[digest(body)] += 1


async def other_method(sender: Sender) -> None:
    """Registered methods, invented ones, and bytes that are none."""
    body, headers = sender.sound()
    invented = "".join(sender.chance.choices("ABCXYZ-_!", k=sender.chance.choice((1, 5, 64, 100))))
    method = sender.chance.choice((*(known.value for known in http.HTTPMethod if known != "POST"), invented, "post"))
    raw = wire(body, headers, method=method)
    answers = await sender.alone(raw)
    # CONNECT names a host and no path; LLHTTP knows methods of other protocols, too.
    allowed = (400, 404, 405)
    sender.ledger.expect("other method", answers[0] if answers else None, *allowed)


async def other_path(sender: Sender) -> None:
    """Paths that look like ours."""
    body, headers = sender.sound()
    path = sender.chance.choice(
        (
            *("/webhooks/", "/webhooks//", "//webhooks", "/Webhooks", "/webhooks/../webhooks", "/webhooks%2fdefault"),
            *("/%77ebhooks", "/webhooks/other", "/webhooks;a", "/", "*", "webhooks", "/webhooks/default/", "/\x7f"),
            *("/webhooks/" + "d" * 9_000, "/webhooks\\default", "/.git/config", "/webhooks/\xe9", "/metrics/.."),
        )
    )
    answers = await sender.alone(wire(body, headers, path=path))
    sender.ledger.expect("other path", answers[0] if answers else None, 400, 404)


async def encoded(sender: Sender) -> None:
    """Content-Encoding, even an identity, even an empty one."""
    body, headers = sender.sound()
    coding = sender.chance.choice(("gzip", "identity", "", "br, gzip", "x" * 200))
    answers = await sender.alone(wire(body, headers | {"Content-Encoding": coding}))
    sender.ledger.expect("encoded", answers[0] if answers else None, 415)


async def header_flood(sender: Sender) -> None:
    """Too many lines, too long a line, too many small ones, too long a target."""
    body, headers = sender.sound()
    extra, path = sender.chance.choice(
        (
            ({f"h{number}": "1" for number in range(70)}, "/webhooks"),
            ({"x": "y" * 17_000}, "/webhooks"),
            ({f"h{number}": "y" * 400 for number in range(50)}, "/webhooks"),
            ({}, "/webhooks?" + "q" * 17_000),
            ({"x" * 17_000: "y"}, "/webhooks"),
            ({f"h{number}": "" for number in range(5_000)}, "/webhooks"),
        )
    )
    answers = await sender.alone(wire(body, {**extra, **headers}, path=path))
    sender.ledger.expect("header flood", answers[0] if answers else None, 400)


async def too_large(sender: Sender) -> None:
    """More than the limit: said beforehand, or found while the chunks come."""
    body = sender.chance.randbytes(64) * 5_000
    headers = sign(sender.key, body, next(sender.numbers))
    if sender.chance.random() < 0.5:
        answers = await sender.alone(wire(body, headers))
    else:
        framed = b"10000\r\n" + body[:65_536] + b"\r\n"
        answers = await sender.alone(
            wire(body, headers, framing=b"transfer-encoding: chunked\r\n", framed=framed * 5 + b"0\r\n\r\n")
        )
    sender.ledger.expect("too large", answers[0] if answers else None, 413)


async def largest(sender: Sender) -> None:
    """Just the limit, and one byte more."""
    number = next(sender.numbers)
    bare = absurd_filled(number, 0)
    body = absurd_filled(number, MAX_BODY_BYTES - len(bare))
    sender.ledger.authentic("largest", body, await sender.ask(wire(body, sign(sender.key, body, number))))
    more = body + b" "
    answers = await sender.alone(wire(more, sign(sender.key, more, number)))
    sender.ledger.expect("one byte more", answers[0] if answers else None, 413)


def absurd_filled(number: int, count: int) -> bytes:
    """An unusable event with so many letters."""
    return b'{"id":"evt_%d","note":"%b"}' % (number, b"z" * count)
