"""The way that cuts connections reads PostgreSQL's protocol as it comes: in any pieces, and knows a COMMIT."""

import random
import struct

import pytest

from tests.chaos.wire import Reader, is_commit

SSL_REQUEST = struct.pack("!II", 8, 80_877_103)
WHO = b"user\0tallyhook\0\0"
STARTUP = struct.pack("!II", 8 + len(WHO), 3 << 16) + WHO


def message(kind: bytes, body: bytes) -> bytes:
    """A message as a client sends it."""
    return kind + struct.pack("!I", len(body) + 4) + body


@pytest.mark.parametrize("startup", [STARTUP, SSL_REQUEST + STARTUP], ids=["plain", "after a question for encryption"])
def test_messages_are_found_however_the_bytes_come(startup: bytes) -> None:
    """The same messages in one piece and in random ones; those of the start-up are left out."""
    sent = [(b"Q", b"BEGIN\0"), (b"d", b"x" * 3000), (b"c", b""), (b"P", b"\0COMMIT\0\0\0")]
    wire = startup + b"".join(message(*one) for one in sent)
    assert Reader().feed(wire) == sent
    chance, reader, found = random.Random(7), Reader(), []
    while wire:
        size = chance.randint(1, 700)
        found += reader.feed(wire[:size])
        wire = wire[size:]
    assert found == sent


def test_what_is_on_its_way_is_known_by_its_kind() -> None:
    """Half a CopyData is one that a cut may hit."""
    reader = Reader()
    reader.feed(STARTUP)
    assert reader.pending() == b""
    reader.feed(message(b"d", b"x" * 100)[:50])
    assert reader.pending() == b"d"


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        (b"Q", b"COMMIT\0", True),
        (b"Q", b"commit \0", True),
        (b"P", b"name\0COMMIT\0\0\0", True),
        (b"Q", b"SELECT 'COMMIT'\0", False),
        (b"P", b"COMMIT\0SELECT 1\0\0\0", False),
        (b"d", b"COMMIT\0", False),
    ],
)
def test_a_commit_is_the_statement_alone(kind: bytes, body: bytes, expected: bool) -> None:
    """Neither a text that has the word nor data is one."""
    assert is_commit(kind, body) is expected
