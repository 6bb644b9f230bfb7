"""The bounds of one connection: what a sender may make the door hold, and for how long.

How large a body may be is the endpoint's to say.
"""

from dataclasses import dataclass

from schemas.door import HEAD_TIMEOUT_SECONDS, MAX_HELD_BYTES


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one HTTP connection, and of what all of them hold.

    Args:
        max_headers: header lines of one request.
        max_header_bytes: request line and headers together.
        head_timeout_seconds: from a request's first byte, or from the connection's start, to the end of its headers.
        body_timeout_seconds: from the end of the headers to the end of the body.
        idle_timeout_seconds: a kept connection without a request, or one that does not read its answers.
        max_held_bytes: bytes of bodies that all connections hold together.
        max_pipelined: requests that were sent before an earlier one was answered.
        linger_seconds: how long the rest of a refused request is read and thrown away, so that its sender can
            read the answer instead of meeting a reset.
        linger_bytes: how much of it.
    """

    max_headers: int
    max_header_bytes: int
    body_timeout_seconds: float
    head_timeout_seconds: float = HEAD_TIMEOUT_SECONDS
    idle_timeout_seconds: float = 75.0
    max_held_bytes: int = MAX_HELD_BYTES
    max_pipelined: int = 32
    linger_seconds: float = 3.0
    linger_bytes: int = 16_777_216
