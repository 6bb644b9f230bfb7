"""Signed requests as bytes, and ways to spoil them."""

import base64
import time
from collections.abc import Callable, Mapping
from random import Random

from tallyhook.gateway.signing import SigningKey

Headers = dict[str, str]

PATHS = ("/webhooks", "/webhooks/default", "/webhooks?x=1", "http://host/webhooks")


def wire(
    body: bytes,
    headers: Mapping[str, str],
    *,
    path: str = "/webhooks",
    method: str = "POST",
    framing: bytes | None = None,
    framed: bytes | None = None,
) -> bytes:
    """One request.

    Args:
        framing: header lines that tell the body's end; Content-Length unless given.
        framed: the body as it goes over the wire; as it is unless given.
    """
    lines = [f"{method} {path} HTTP/1.1", "host: test", *(f"{name}: {value}" for name, value in headers.items())]
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n"
    length = b"content-length: %d\r\n" % len(body)
    return head + (length if framing is None else framing) + b"\r\n" + (body if framed is None else framed)


def sign(key: SigningKey, body: bytes, number: int, *, age_seconds: int = 0) -> Headers:
    """The three headers of a message of its own."""
    return key.sign(f"msg_{number}", int(time.time()) - age_seconds, body)


def chunks(chance: Random, body: bytes) -> bytes:
    """The body in chunks of random sizes, with extensions, zeros before sizes, and trailers."""
    parts = []
    at = 0
    while at < len(body):
        size = chance.choice((1, 2, 7, 100, len(body)))
        piece = body[at : at + size]
        zeros = "0" * chance.choice((0, 0, 0, 5))
        extension = chance.choice(("", "", "", ";a=b", ';q="x y"', ";n"))
        parts.append(f"{zeros}{len(piece):{chance.choice('xX')}}{extension}\r\n".encode() + piece + b"\r\n")
        at += size
    trailer = chance.choice((b"", b"", b"x-sum: 1\r\n", b"webhook-id: other\r\n"))
    return b"".join(parts) + b"0\r\n" + trailer + b"\r\n"


def _signature(headers: Headers, change: Callable[[str], str]) -> None:
    headers["webhook-signature"] = change(headers["webhook-signature"])


def _urlsafe(text: str) -> str:
    raw = base64.b64decode(text[4:])
    return "v1a," + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _flipped(chance: Random, text: str) -> str:
    raw = bytearray(base64.b64decode(text[4:]))
    raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    return "v1a," + base64.b64encode(raw).decode()


def spoil(chance: Random, headers: Headers) -> Headers:
    """Headers that are not authentic any more, in one of many ways."""
    spoiled = dict(headers)
    name = chance.choice(sorted(headers))
    ways: tuple[Callable[[], object], ...] = (
        lambda: spoiled.pop(name),
        lambda: spoiled.update({name: ""}),
        lambda: spoiled.update({name: "x" * chance.choice((1, 600, 9_000))}),
        lambda: spoiled.update({"webhook-id": spoiled["webhook-id"] + chance.choice(("x", "\xe9", " y", "\t1"))}),
        lambda: spoiled.update(
            {"webhook-timestamp": chance.choice(("+", "-", "0x", "1")) + spoiled["webhook-timestamp"]}
        ),
        lambda: spoiled.update(
            {"webhook-timestamp": spoiled["webhook-timestamp"] + chance.choice((".0", "e0", "_0", "0"))}
        ),
        lambda: spoiled.update(
            {"webhook-timestamp": chance.choice(("NaN", "١٢٣".encode().decode("latin-1"), "9" * 30))}
        ),
        lambda: _signature(spoiled, _urlsafe),
        lambda: _signature(spoiled, lambda text: _flipped(chance, text)),
        lambda: _signature(spoiled, lambda text: text.rstrip("=")),
        lambda: _signature(
            spoiled, lambda text: text.replace("v1a,", chance.choice(("v1,", "v2a,", "V1A,", "v1a:", "")))
        ),
        lambda: _signature(spoiled, lambda text: text + ","),
        lambda: _signature(spoiled, lambda text: " ".join([text] * 17)),
        lambda: _signature(spoiled, lambda _: "v1a," + base64.b64encode(chance.randbytes(64)).decode()),
    )
    chance.choice(ways)()
    return spoiled


def bend(chance: Random, raw: bytes) -> bytes:
    """The bytes of a request with a few of them changed, cut out, doubled or put in."""
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at, length = chance.randrange(len(raw)), chance.choice((1, 1, 2, 10, 100))
        piece = raw[at : at + length]
        way = chance.randrange(5)
        if way == 0:
            raw = raw[:at] + bytes([raw[at] ^ (1 << chance.randrange(8))]) + raw[at + 1 :]
        elif way == 1:
            raw = raw[:at] + raw[at + length :]
        elif way == 2:
            raw = raw[:at] + piece + raw[at:]
        elif way == 3:
            raw = (
                raw[:at]
                + chance.choice((b"\r\n", b"\n", b"\x00", b" ", b":", b"\r\n\r\n", chance.randbytes(3)))
                + raw[at:]
            )
        else:
            raw = raw[:at]
        if not raw:
            return b"\x00"
    return raw
