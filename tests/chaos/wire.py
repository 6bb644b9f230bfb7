"""A way to PostgreSQL that reads along and hangs up at the moments that hurt most: around a COMMIT, within a COPY."""

import contextlib
import socket
import struct
import threading
from collections import Counter, deque
from collections.abc import Iterable
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

Cut = Literal["commit done, not confirmed", "commit lost", "half of a COPY"]
CUTS: tuple[Cut, ...] = ("commit done, not confirmed", "commit lost", "half of a COPY")

STARTUP_CODES = range(3 << 16, 4 << 16)
"""Protocol 3.x; what a client sends before is a question for encryption, which is as short and answered with a byte."""

COPY_DATA, QUERY, PARSE = b"d", b"Q", b"P"
ANSWER_SECONDS = 10.0


class Reader:
    """Takes what a client sends, as it comes, and gives the whole messages in it as (kind, body)."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._started = False

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """The messages that are whole now; those of the start-up have no kind and are left out."""
        self._bytes += data
        found = []
        while (message := self._next()) is not None:
            kind, body = message
            if self._started:
                found.append((kind, body))
            elif struct.unpack("!I", body[:4])[0] in STARTUP_CODES:
                self._started = True
        return found

    def pending(self) -> bytes:
        """The kind of the message whose rest is still to come; empty when there is none."""
        return bytes(self._bytes[:1]) if self._started else b""

    def _next(self) -> tuple[bytes, bytes] | None:
        tag = 1 if self._started else 0
        if len(self._bytes) < tag + 4:
            return None
        length = int(struct.unpack("!I", self._bytes[tag : tag + 4])[0])
        if len(self._bytes) < tag + length:
            return None
        message = bytes(self._bytes[:tag]), bytes(self._bytes[tag + 4 : tag + length])
        del self._bytes[: tag + length]
        return message


def is_commit(kind: bytes, body: bytes) -> bool:
    """Whether a message is the COMMIT, sent by itself or to be prepared."""
    if kind == QUERY:
        return body.rstrip(b"\0").strip().upper() == b"COMMIT"
    return kind == PARSE and body.split(b"\0", 2)[1].strip().upper() == b"COMMIT"


class CuttingWay:
    """Listens on a port of its own and passes bytes on to a server, but for the cuts that are planned.

    A cut is met by the first connection that comes to its place; then the next one counts. Both ends find the
    connection closed. `cuts` counts what was done.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.cuts: Counter[Cut] = Counter()
        self._planned: deque[Cut] = deque()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "CuttingWay":
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def plan(self, cuts: Iterable[Cut]) -> None:
        """These cuts come next, in this order."""
        with self._lock:
            self._planned.extend(cuts)

    @property
    def left(self) -> int:
        """How many planned cuts are still to come."""
        return len(self._planned)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target, timeout=5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for side in (client, server):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            silent = threading.Event()
            threading.Thread(target=self._to_server, args=(client, server, silent), daemon=True).start()
            threading.Thread(target=_to_client, args=(server, client, silent), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket, silent: threading.Event) -> None:
        reader = Reader()
        with contextlib.suppress(OSError):
            while data := client.recv(65_536):
                messages = reader.feed(data)
                cut = self._due(messages, reader)
                if cut is None:
                    server.sendall(data)
                    continue
                if cut == "commit done, not confirmed":
                    # The other direction swallows the answer from here on: that it came says that it was done.
                    silent.set()
                    server.sendall(data)
                    _await_answer(client)
                elif cut == "half of a COPY":
                    server.sendall(data[: max(1, len(data) // 2)])
                break
        _close(client, server)

    def _due(self, messages: list[tuple[bytes, bytes]], reader: Reader) -> Cut | None:
        commits = any(is_commit(*message) for message in messages)
        copies = reader.pending() == COPY_DATA or any(kind == COPY_DATA for kind, _ in messages)
        with self._lock:
            if not self._planned:
                return None
            if not (copies if self._planned[0] == "half of a COPY" else commits):
                return None
            cut = self._planned.popleft()
            self.cuts[cut] += 1
            return cut


def through(way: CuttingWay, database_url: str) -> str:
    """The address of the same database by that way, unencrypted so that the way can read along."""
    parts = urlsplit(database_url)
    user = parts.netloc.rpartition("@")[0]
    return urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{way.port}", query="sslmode=disable"))


def way_to(database_url: str) -> CuttingWay:
    """A way to that database's server."""
    parts = urlsplit(database_url)
    assert parts.hostname is not None
    assert parts.port is not None
    return CuttingWay(parts.hostname, parts.port)


def _to_client(server: socket.socket, client: socket.socket, silent: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while data := server.recv(65_536):
            if silent.is_set():
                break
            client.sendall(data)
    _close(client, server)


def _await_answer(client: socket.socket) -> None:
    """Waits until the other direction has swallowed the server's answer and closed the client's end."""
    client.settimeout(ANSWER_SECONDS)
    client.recv(1)


def _close(*sides: socket.socket) -> None:
    for side in sides:
        with contextlib.suppress(OSError):
            side.shutdown(socket.SHUT_RDWR)
        side.close()
