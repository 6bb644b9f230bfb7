"""Games with header lines, from the bytes on the wire to the verdict: repeated, stripped, folded, spelled otherwise.

The judge reads the head in the strictest way there is (RFC 9112, section 5): a request that it cannot read so, or where
one of the three headers does not stand exactly once with exactly its value, must never be taken for authentic.
"""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingress.keyring import Keyring
from ingress.limits import Limits
from ingress.messages import ACCEPTED, Head, Request, Response
from ingress.refusals import Refused, response_of
from ingress.request_reader import RequestReader
from ingress.schemes.standard_webhooks import StandardWebhooks
from tallyhook.gateway.signing import SigningKey
from tests.unit.ingress.requests import NOW, at

KEY = SigningKey(b"\x01" * 32)
KEYS = Keyring(f"k1={KEY.public_text()}", None).keys
SCHEME = StandardWebhooks(tolerance_seconds=300, max_signatures=16, max_id_bytes=512)
LIMITS = Limits(max_headers=64, max_header_bytes=16_384, body_timeout_seconds=10)
BODY = b'{"id":"evt_1"}'
SIGNED = {name.encode(): value.encode() for name, value in KEY.sign("evt_1", NOW, BODY).items()}
SOUND = [
    b"host: x",
    *(name + b": " + value for name, value in SIGNED.items()),
    b"content-length: %d" % len(BODY),
]
_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\x80-\xff\t]*?)[ \t]*")


class Lets:
    """A handler that lets every request in and notes what is refused."""

    def __init__(self) -> None:
        self.refusals: list[str] = []
        self.inside = 0

    def early(self, head: Head) -> Response | None:
        """Anything may enter at /webhooks."""
        if (head.method, head.path) != ("POST", "/webhooks"):
            return response_of("not_found")
        self.inside += 1
        return None

    def max_body_bytes(self, head: Head) -> int:
        """The default, at the path that lets in."""
        return 262_144 if head.path == "/webhooks" else 0

    async def answer(self, request: Request) -> Response:
        """Not asked: the requests are judged where they are read."""
        raise AssertionError(request)

    def refused(self, refusal: Refused) -> Response:
        """Notes the reason."""
        self.refusals.append(refusal.reason)
        return ACCEPTED

    def left(self) -> None:
        """One is over."""
        self.inside -= 1


def authentic(wire: bytes) -> list[bytes]:
    """The bodies on this connection that are vouched for; only a typed refusal may stop one."""
    return authentic_in_pieces(wire, len(wire) or 1)


def authentic_in_pieces(wire: bytes, step: int) -> list[bytes]:
    """The same, with the bytes coming so many at a time."""
    handler = Lets()
    reader = RequestReader(LIMITS, handler, lambda: None)
    for begin in range(0, len(wire), step):
        reader.feed(wire[begin : begin + step])
    reader.drop()
    found = []
    for arrival in reader.arrivals:
        if arrival.request is None:
            continue
        handler.left()
        try:
            SCHEME.verify(arrival.request, KEYS, at(NOW))
        except Refused:
            continue
        found.append(arrival.request.body)
    assert handler.inside == 0
    return found


def wire_of(lines: list[bytes], body: bytes = BODY, end: bytes = b"\r\n") -> bytes:
    """One request with these header lines."""
    return end.join([b"POST /webhooks HTTP/1.1", *lines, b"", b""]) + body


def strictly(lines: list[bytes]) -> dict[bytes, list[bytes]] | None:
    """The headers as the strictest reader has them; None where a line is no header line."""
    found: dict[bytes, list[bytes]] = {}
    for line in lines:
        read = _LINE.fullmatch(line)
        if read is None:
            return None
        found.setdefault(read[1].lower(), []).append(read[2])
    return found


def proved(found: dict[bytes, list[bytes]]) -> bool:
    """Whether each of the three headers stands there once, with its value; other signatures may stand beside ours."""
    if any(len(found.get(name, ())) != 1 for name in SIGNED):
        return False
    sound = all(found[name] == [SIGNED[name]] for name in (b"webhook-id", b"webhook-timestamp"))
    return sound and SIGNED[b"webhook-signature"] in found[b"webhook-signature"][0].split(b" ")


def must_count(lines: list[bytes]) -> bool:
    """Whether these lines are an authentic request, and one that everybody reads so."""
    found = strictly(lines)
    if found is None or not proved(found):
        return False
    return found.get(b"content-length") == [b"%d" % len(BODY)] and b"transfer-encoding" not in found


def bent(line: bytes) -> Iterator[bytes]:
    """Spellings of a line that some reader takes for the same, and some that nobody should."""
    name, _, value = line.partition(b": ")
    yield name.upper() + b":" + value
    yield name.title() + b":\t " + value + b" \t"
    yield name + b" : " + value
    yield name + b"\t:" + value
    yield b" " + line
    yield name + b":\r\n " + value
    yield name + b": " + value[:3] + b"\r\n\t" + value[3:]
    yield name + b": " + value[:3] + b"\n" + value[3:]
    yield name + b": " + value[:3] + b"\x00" + value[3:]
    yield name + b": " + value + b"\x00"
    yield name + b": " + value + b"\x0b"
    yield name + b": " + value + b"\r"
    yield name + b": " + value + b", " + value
    yield name + b": " + value[:-1]
    yield name + b":"
    yield name.replace(b"-", b"_") + b": " + value
    yield name + b"\x00: " + value
    yield name + b"\xc2\xa0: " + value
    yield b": " + value
    yield name
    yield b"x-" + line
    yield line + b"\r\nx: y"
    yield line + b"\r\n" + line


@pytest.mark.parametrize("line", range(len(SOUND)), ids=[line.split(b":")[0].decode() for line in SOUND])
def test_each_line_bent_in_each_way(line: int) -> None:
    """No spelling turns a request that is not exactly the signed one into an authentic one, and no good one is lost."""
    assert authentic(wire_of(SOUND)) == [BODY]
    ways = list(bent(SOUND[line]))
    for way in ways:
        lines = b"\r\n".join([*SOUND[:line], way, *SOUND[line + 1 :]]).split(b"\r\n")
        found = authentic(wire_of(lines))
        if must_count(lines):
            assert found == [BODY], way
        elif SOUND[line].startswith(b"webhook-"):
            assert found == [], way
        else:
            assert set(found) <= {BODY}, way


pieces = st.one_of(
    st.sampled_from(SOUND),
    st.sampled_from([spelling for line in SOUND for spelling in bent(line)]),
    st.sampled_from(
        [b"transfer-encoding: chunked", b"content-length: 0", b"connection: close, upgrade", b"upgrade: h2c"]
    ),
    st.binary(max_size=20),
)


@given(st.lists(pieces, max_size=12), st.permutations(SOUND))
def test_added_lines_never_make_two_readings(added: list[bytes], sound: list[bytes]) -> None:
    """A good request among lines of any kind: what counts as authentic is read so by the strictest reader too."""
    lines = b"\r\n".join([*sound, *added]).split(b"\r\n")
    if b"" in lines:  # an empty line ends the head, and what follows is the body
        return
    found = authentic(wire_of(lines))
    strict = strictly(lines)

    assert set(found) <= {BODY}
    if found:
        assert strict is not None
        assert proved(strict)


@given(st.sampled_from([b"\n", b"\r", b"\r\r\n", b"\n\r", b"\r\n\x00"]), st.integers(0, 10))
def test_other_ends_of_lines_are_no_ends(end: bytes, junk: int) -> None:
    """A bare line feed or return ends no line: two readers in a row would cut the head at different places."""
    assert authentic(wire_of(SOUND, end=end)) == []
    mixed = wire_of([*SOUND[:-1], SOUND[-1] + end + b"x: y" * junk])
    assert set(authentic(mixed)) <= {BODY}


SMUGGLED = wire_of(SOUND)


@pytest.mark.parametrize(
    "frame",
    [
        [b"content-length: 5", b"transfer-encoding: chunked"],
        [b"transfer-encoding: chunked", b"content-length: 5"],
        [b"transfer-encoding: chunked", b"transfer-encoding: identity"],
        [b"transfer-encoding: identity"],
        [b"transfer-encoding: chunked, identity"],
        [b"transfer-encoding: xchunked"],
        [b"transfer-encoding : chunked", b"content-length: 5"],
        [b"transfer-encoding:\x0bchunked", b"content-length: 5"],
        [b"content-length: 5", b"content-length: 6"],
        [b"content-length: 5, 5"],
        [b"content-length: +5"],
        [b"content-length: 0x5"],
        [b"content-length: 5 "],
        [b"content-length: 99999999999999999999999999"],
        [b"content-length: -1"],
        [b"content-length:"],
        [b"content_length: 5"],
    ],
)
def test_the_end_of_a_body_is_told_in_one_way(frame: list[bytes]) -> None:
    """Framing that two readers could take differently ends the connection: what hides behind it is never reached."""
    outer = b"\r\n".join([b"POST /webhooks HTTP/1.1", b"host: x", *frame, b"", b""])
    honest = strictly(frame) == {b"content-length": [b"5"]}

    found = authentic(outer + b"0\r\n\r\n" + SMUGGLED)

    if b"content_length" in frame[0]:
        assert found == []  # no length at all: the next bytes are no request line
    else:
        assert found == ([BODY] if honest else [])
