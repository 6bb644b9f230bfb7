"""An answer as bytes (RFC 9112)."""

import time
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

from ingress.messages import Response

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


def encode(response: Response, *, keep_alive: bool) -> bytes:
    """Status line, headers and body; a connection that ends says so."""
    lines = [
        f"HTTP/1.1 {response.status} {_PHRASES.get(response.status, '')}",
        f"content-type: {response.content_type}",
        f"content-length: {len(response.body)}",
        f"date: {_date(int(time.time()))}",
        *(f"{name}: {value}" for name, value in response.headers),
    ]
    if not keep_alive:
        lines.append("connection: close")
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + response.body


@lru_cache(maxsize=2)
def _date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
