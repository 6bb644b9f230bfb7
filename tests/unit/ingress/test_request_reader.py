"""However the bytes are cut, the same requests come out; what enters also leaves."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingress.limits import Limits
from ingress.messages import ACCEPTED, Head, Request, Response
from ingress.refusals import Refused, response_of
from ingress.request_reader import RequestReader

MAX_BODY_BYTES = 100
LIMITS = Limits(max_headers=8, max_header_bytes=500, body_timeout_seconds=1)


class CountingHandler:
    """Lets /webhooks in and counts."""

    def __init__(self) -> None:
        self.inside = 0
        self.refusals: list[str] = []

    def early(self, head: Head) -> Response | None:
        """Only /webhooks needs its body."""
        if head.path != "/webhooks":
            return response_of("not_found")
        self.inside += 1
        return None

    def max_body_bytes(self, head: Head) -> int:
        """None for any other path than the one that lets in."""
        return MAX_BODY_BYTES if head.path == "/webhooks" else 0

    async def answer(self, request: Request) -> Response:
        """Never asked here."""
        raise AssertionError(request)

    def refused(self, refusal: Refused) -> Response:
        """Notes the reason."""
        self.refusals.append(refusal.reason)
        return ACCEPTED

    def left(self) -> None:
        """One is over."""
        self.inside -= 1


WIRE = (
    b"POST /webhooks?a=b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    b"POST /webhooks HTTP/1.1\r\nTransfer-Encoding: chunked\r\nX-Y: 1\r\n\r\n2;e=1\r\nab\r\n1\r\nc\r\n0\r\nT: 1\r\n\r\n"
    b"POST /webhooks HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 4\r\n\r\nwxyz"
    b"GET /elsewhere HTTP/1.1\r\n\r\n"
    b"POST /webhooks HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


def read_in_pieces(wire: bytes, cuts: list[int]) -> tuple[RequestReader, CountingHandler]:
    """A reader that was fed the bytes cut at these places."""
    handler = CountingHandler()
    reader = RequestReader(LIMITS, handler, lambda: None)
    places = sorted({0, len(wire), *cuts})
    for begin, end in itertools.pairwise(places):
        reader.feed(wire[begin:end])
    return reader, handler


@given(st.lists(st.integers(0, len(WIRE)), max_size=60))
def test_the_cuts_do_not_matter(cuts: list[int]) -> None:
    """TCP has no messages: a request may come byte by byte or five at once."""
    reader, handler = read_in_pieces(WIRE, cuts)

    found = [
        (arrival.request.head.path, arrival.request.body) if arrival.request is not None else None
        for arrival in reader.arrivals
    ]
    assert found == [("/webhooks", b"abc"), ("/webhooks", b"abc"), ("/webhooks", b"wxyz"), None, ("/webhooks", b"")]
    assert [arrival.keep_alive for arrival in reader.arrivals] == [True, True, True, True, False]
    assert (handler.inside, handler.refusals) == (4, [])


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        (b"POST /webhooks HTTP/1.1\r\nContent-Length: 101\r\n\r\n", "body_too_large"),
        (b"POST /webhooks HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" + b"x" * 101, "body_too_large"),
        (b"POST /webhooks HTTP/1.1\r\nX: " + b"x" * 500 + b"\r\n\r\n", "headers_too_large"),
        (b"POST /webhooks HTTP/1.1\r\n" + b"X: 1\r\n" * 9 + b"\r\n", "headers_too_large"),
        (b"POST /webhooks?" + b"x" * 500 + b" HTTP/1.1\r\n\r\n", "headers_too_large"),
        (b"POST /webhooks HTTP/1.1\r\nX: " + b"x" * 70_000, "headers_too_large"),
        (b"POST /webhooks HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "malformed"),
        (b"POST /webhooks HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"x" * 70_000, "malformed"),
        (b"POST /webhooks HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "malformed"),
        (b"FOO /webhooks\r\n\r\n", "malformed"),
    ],
)
def test_out_of_bounds_is_refused_however_it_is_cut(wire: bytes, reason: str) -> None:
    """One refusal, nothing is read after it, and what had entered has left."""
    for step in (1_000_000, 1000, 7):
        reader, handler = read_in_pieces(wire, list(range(0, len(wire), step)))
        assert ([reason], 0) == (handler.refusals, handler.inside)
        assert (len(reader.arrivals), reader.phase) == (1, "ended")
        reader.feed(b"GET /elsewhere HTTP/1.1\r\n\r\n")
        assert len(reader.arrivals) == 1


def test_a_half_request_that_is_given_up_has_left() -> None:
    """The count of requests in flight cannot leak."""
    reader, handler = read_in_pieces(b"POST /webhooks HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc", [])
    assert handler.inside == 1

    reader.drop()

    assert handler.inside == 0


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=5))
def test_no_bytes_break_the_reader(wire: bytes, cuts: list[int]) -> None:
    """Whatever comes is read, waited for or refused."""
    reader, handler = read_in_pieces(wire, [cut for cut in cuts if cut <= len(wire)])

    reader.drop()

    assert handler.inside == sum(1 for arrival in reader.arrivals if arrival.request is not None)
