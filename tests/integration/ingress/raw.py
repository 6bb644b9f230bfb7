"""Requests as bytes on a socket, for what no HTTP client would send."""

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def connected(port: int, timeout_seconds: float = 30.0) -> Iterator[socket.socket]:
    """A connection to the door."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_seconds) as connection:
        yield connection


def head(path: str, headers: Mapping[str, str] | list[tuple[str, str]], method: str = "POST") -> bytes:
    """A request line and headers; pairs where a name is to be repeated."""
    pairs = headers if isinstance(headers, list) else list(headers.items())
    lines = [f"{method} {path} HTTP/1.1", "host: test", *(f"{name}: {value}" for name, value in pairs)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def read_answer(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """One answer with its whole body; raises ConnectionError when the connection ends before."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(connection)
    top, _, body = data.partition(b"\r\n\r\n")
    status, *lines = top.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += _more(connection)
    return int(status.split(" ")[1]), headers, body


def ended(connection: socket.socket) -> bool:
    """Waits for the end of the stream; false when more bytes come."""
    return connection.recv(1) == b""


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionError("the connection ended without a whole answer")
    return data


def seconds_until_answer(connection: socket.socket) -> tuple[float, int]:
    """How long an answer took from now, and its status."""
    began = time.monotonic()
    status, _, _ = read_answer(connection)
    return time.monotonic() - began, status
