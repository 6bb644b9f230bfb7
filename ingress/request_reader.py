"""From bytes to requests: llhttp reads the syntax (RFC 9112), the bounds are ours.

llhttp refuses Content-Length beside Transfer-Encoding, repeated lengths, folded headers and bare line feeds.
"""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import httptools

from ingress.handler import Handler
from ingress.held_bytes import HeldBytes
from ingress.limits import Limits
from ingress.messages import Head, Request, Response
from ingress.refusals import Refused

Phase = Literal["idle", "head", "body", "ended"]

_FRAMING_FACTOR = 16
"""A body in one-byte chunks takes six bytes a byte on the wire; above this a sender sends framing alone."""
_PIECE_BYTES = 16_384
"""So much is parsed at once. What one piece holds of the request before counts for the next one too, so that a piece
must be small beside the bounds."""

_UNKNOWN_METHOD = re.compile(rb"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64} (/[\x21-\x7e]*) HTTP/1\.[01]\r\n")


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request in its turn: one to be answered, or one whose answer is known already.

    Args:
        keep_alive: whether the connection may take another one after it.
        unread: the sender may still be sending a body that nobody reads.
    """

    request: Request | None
    response: Response | None
    keep_alive: bool
    unread: bool = False


class _Enough(Exception):
    """Leaves the parser from inside a callback: the rest of this connection is not read."""


class RequestReader:
    """Reads one connection's requests within the limits; nothing is read after the first that is out of bounds.

    Args:
        limits: the bounds.
        handler: judges heads, and answers what cannot be read.
        ask_for_body: called where the sender waits for leave to send its body (Expect: 100-continue).
        held: counts the bytes of bodies; those of a whole request are given back by whoever answers it.
    """

    def __init__(
        self, limits: Limits, handler: Handler, ask_for_body: Callable[[], None], held: HeldBytes | None = None
    ) -> None:
        self._limits, self._handler, self._ask_for_body = limits, handler, ask_for_body
        self._held = held or HeldBytes(limits.max_held_bytes, lambda: False)
        self._parser = httptools.HttpRequestParser(self)
        self.arrivals: deque[Arrival] = deque()
        self.phase: Phase = "idle"
        self.begun = 0
        self._head: Head | None = None
        self._early: Response | None = None
        self._clear()

    def feed(self, data: bytes) -> None:
        """Reads on; whole requests and refusals are appended to `arrivals`."""
        try:
            for begin in range(0, len(data), _PIECE_BYTES):
                if self.phase == "ended":
                    return
                piece = data[begin : begin + _PIECE_BYTES]
                self._parse(piece)
                self._count_raw(len(piece))
        except Refused as refusal:
            self.give_up(refusal)
        except _Enough:
            self.phase = "ended"

    def give_up(self, refusal: Refused) -> None:
        """Refuses what is half read and reads no more."""
        self.drop()
        self.arrivals.append(Arrival(None, self._handler.refused(refusal), keep_alive=False, unread=True))

    def drop(self) -> None:
        """Forgets what is half read and reads no more; what arrived whole stays."""
        if self._entered:
            self._handler.left()
        self._held.give_back(len(self._body))
        self._clear()
        self.phase = "ended"

    # The parser's callbacks.

    def on_message_begin(self) -> None:
        """A request line starts."""
        self._clear()
        self.phase = "head"
        self.begun += 1

    def on_url(self, url: bytes) -> None:
        """A piece of the request's target."""
        self._url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header line; behind a chunked body it is a trailer, which is counted and dropped."""
        self._count_head(len(name) + len(value) + 4)
        if self.phase != "head":
            return
        if len(self._headers) >= self._limits.max_headers:
            raise Refused("headers_too_large", f"more than {self._limits.max_headers} header lines")
        # The blanks behind a value are no part of it (RFC 9112, section 5.1); llhttp leaves them there.
        self._headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Whatever can be judged without the body is judged before it is read."""
        if self._parser.should_upgrade() and self._parser.get_method() != b"CONNECT":
            self._plain_head = self._without_upgrade()
            return
        head = Head(self._parser.get_method().decode("ascii"), path_of(self._url), tuple(self._headers))
        self.phase, self._raw_bytes = "body", 0
        lengths = head.all(b"content-length")
        early = self._handler.early(head)
        if early is not None:
            if head.method == "HEAD":
                early = replace(early, body=b"")  # an answer to HEAD has none, or the next answer would be misread
            if head.all(b"transfer-encoding") or lengths not in ([], [b"0"]):
                self.arrivals.append(Arrival(None, early, keep_alive=False, unread=True))
                raise _Enough
            self._early = early
            return
        self._head, self._entered = head, True
        self._max_body_bytes = self._handler.max_body_bytes(head)
        if lengths and int(lengths[0]) > self._max_body_bytes:
            raise Refused("body_too_large", f"Content-Length {int(lengths[0])}, allowed {self._max_body_bytes}")
        if [value.lower() for value in head.all(b"expect")] == [b"100-continue"]:
            self._ask_for_body()

    def on_body(self, piece: bytes) -> None:
        """A piece of the body."""
        if len(self._body) + len(piece) > self._max_body_bytes:
            raise Refused("body_too_large", f"more than {self._max_body_bytes} bytes")
        self._held.take(len(piece))
        # One buffer and no list of pieces: a body in chunks of two bytes would hold twenty times its size.
        self._body += piece

    def on_message_complete(self) -> None:
        """The request is whole."""
        if self._plain_head:
            return
        request = Request(self._head, bytes(self._body)) if self._head is not None else None
        self.arrivals.append(Arrival(request, self._early, self._parser.should_keep_alive()))
        self._entered = False
        self._clear()
        self.phase = "idle"
        if len(self.arrivals) > self._limits.max_pipelined:
            raise Refused("malformed", f"more than {self._limits.max_pipelined} requests ahead of their answers")

    # The bounds.

    def _parse(self, data: bytes) -> None:
        while data:
            fresh = self.phase == "idle"
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                # No other protocol is spoken here, so the offer is left out and the rest is HTTP/1.1 (RFC 9110, 7.8).
                data = self._plain_head + data[int(upgrade.args[0]) :]
                self._plain_head = b""
                self._parser = httptools.HttpRequestParser(self)
            except httptools.HttpParserCallbackError as failure:
                raise failure.__context__ or failure from None
            except httptools.HttpParserInvalidMethodError:
                self._answer_unknown_method(data if fresh else b"")
            except httptools.HttpParserError as failure:
                raise Refused("malformed", str(failure)[:200]) from None
            else:
                return

    def _without_upgrade(self) -> bytes:
        """The head again without its offer of another protocol: with it, llhttp would not read the body."""
        close = any(b"close" in value.lower() for name, value in self._headers if name == b"connection")
        kept = [pair for pair in self._headers if pair[0] not in (b"connection", b"upgrade")]
        kept += [(b"connection", b"close")] if close else []
        lines = [b"%b %b HTTP/1.1" % (self._parser.get_method(), self._url)]
        lines += [b"%b: %b" % pair for pair in kept]
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _answer_unknown_method(self, data: bytes) -> None:
        """llhttp knows the registered methods only; another one that is well formed is answered by its path."""
        line = _UNKNOWN_METHOD.match(data)
        early = self._handler.early(Head("", path_of(line.group(1)), ())) if line is not None else None
        if early is None:
            raise Refused("malformed", "the request line cannot be read")
        self.arrivals.append(Arrival(None, early, keep_alive=False, unread=True))
        raise _Enough

    def _count_head(self, count: int) -> None:
        self._head_bytes += count
        if self._head_bytes > self._limits.max_header_bytes:
            raise Refused("headers_too_large", f"more than {self._limits.max_header_bytes} bytes of headers")

    def _count_raw(self, count: int) -> None:
        """Bounds what the parser itself may hold: a header line without an end, chunks that are mostly framing."""
        self._raw_bytes += count
        if self.phase == "head" and self._raw_bytes > self._limits.max_header_bytes + _PIECE_BYTES:
            raise Refused("headers_too_large", "a header line without an end")
        if self.phase == "body" and self._raw_bytes > self._max_body_bytes * _FRAMING_FACTOR + _PIECE_BYTES:
            raise Refused("malformed", "a body that is mostly chunk framing")

    def _clear(self) -> None:
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = bytearray()
        self._head = self._early = None
        self._entered = False
        self._plain_head = b""
        self._head_bytes = self._raw_bytes = self._max_body_bytes = 0


def path_of(target: bytes) -> str:
    """The path of a request target in origin or absolute form; anything else gives a path that no route has."""
    try:
        path = httptools.parse_url(target).path or b""
    except httptools.HttpParserInvalidURLError:
        return ""
    return path.decode("latin-1")
