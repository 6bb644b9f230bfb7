"""A proxy before Kafka: a partition has no leader for its first batch alone, as one that was just made."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PRODUCE = 0
NOT_LEADER = 6
FLEXIBLE = 9
"""Requests and answers of Produce have compact fields from this version on."""


class LateLeader:
    """Holds the first Produce request back until the next one comes; then refuses it, and hands over the next.

    Args:
        upstream: host:port that the broker tells its clients.
    """

    def __init__(self, upstream: str) -> None:
        host, _, port = upstream.rpartition(":")
        self._upstream = host, int(port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.held, self.refused = threading.Event(), threading.Event()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Ends every connection."""
        for each in (self._server, *self._sockets):
            # The threads that wait on it go on at once.
            with _quiet():
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with _quiet():
            while True:
                client, _ = self._server.accept()
                broker = socket.create_connection(self._upstream)
                self._sockets += [client, broker]
                writing = threading.Lock()
                for target in (self._requests, self._answers):
                    threading.Thread(target=target, args=(client, broker, writing), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket, writing: threading.Lock) -> None:
        first = b""
        for frame in _frames(client):
            (kind,) = struct.unpack_from(">h", frame)
            if kind == PRODUCE and not self.held.is_set():
                first = frame
                self.held.set()
                continue
            if kind == PRODUCE and first and not self.refused.is_set():
                with writing:
                    client.sendall(_sized(_not_leader(first)))
                self.refused.set()
            broker.sendall(_sized(frame))

    def _answers(self, client: socket.socket, broker: socket.socket, writing: threading.Lock) -> None:
        # Whoever asks where the broker is gets the proxy, in both of the protocol's ways to write a text.
        own = struct.pack(">i", int(self.address.rpartition(":")[2]))
        name, port = self._upstream[0].encode(), struct.pack(">i", self._upstream[1])
        for frame in _frames(broker):
            for size in (struct.pack(">h", len(name)), bytes([len(name) + 1])):
                frame = frame.replace(size + name + port, size + b"127.0.0.1" + own)  # noqa: PLW2901
            with writing:
                client.sendall(_sized(frame))


def _frames(source: socket.socket) -> Iterator[bytes]:
    with _quiet():
        while head := _exactly(source, 4):
            yield _exactly(source, struct.unpack(">i", head)[0])


def _exactly(source: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        piece = source.recv(count - len(found))
        if not piece:
            return b""
        found += piece
    return bytes(found)


def _sized(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


@contextmanager
def _quiet() -> Iterator[None]:
    """A connection that has ended ends its threads without a word."""
    try:
        yield
    except OSError:
        return


def _varint(frame: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (frame[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if not frame[at - 1] & 128:
            return value, at


def _not_leader(request: bytes) -> bytes:
    """The answer to a Produce request of one partition: NOT_LEADER_OR_FOLLOWER, nothing was stored."""
    _, version, correlation, id_size = struct.unpack_from(">hhih", request)
    assert version >= FLEXIBLE, version
    at = 10 + max(0, id_size) + 1  # no tagged fields in the header
    transactional_id, at = _varint(request, at)
    at += max(0, transactional_id - 1) + 2 + 4  # acks, timeout
    topics, at = _varint(request, at)
    name_size, name_at = _varint(request, at)
    at = name_at + name_size - 1
    partitions, at = _varint(request, at)
    assert (topics, partitions) == (2, 2), "one topic and one partition, each counted from one"
    (partition,) = struct.unpack_from(">i", request, at)
    of_partition = struct.pack(">ihqqq", partition, NOT_LEADER, -1, -1, -1) + b"\x01\x00\x00"
    of_topic = bytes([name_size]) + request[name_at : name_at + name_size - 1] + b"\x02" + of_partition + b"\x00"
    return struct.pack(">i", correlation) + b"\x00" + b"\x02" + of_topic + struct.pack(">i", 0) + b"\x00"
