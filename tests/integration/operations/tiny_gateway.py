"""A gateway's API of a test's own, with exactly the shapes that are assumed; it can be told to fail."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

KEY = "key_of_the_test"


@dataclass
class Fault:
    """An answer that comes instead of the right one."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b'{"title": "not now"}'
    hang: bool = False
    cut: bool = False


@dataclass
class TinyGateway:
    """What it tells, and what it was asked.

    Args:
        events: bodies by sequence.
        deposits, withdrawals, transactions: objects in order of creation.
        faults: used up one a request.
        asked: paths with their queries.
        connections: how many were opened.
    """

    events: dict[int, bytes] = field(default_factory=dict)
    deposits: list[dict[str, Any]] = field(default_factory=list)
    withdrawals: list[dict[str, Any]] = field(default_factory=list)
    transactions: list[dict[str, Any]] = field(default_factory=list)
    balance: dict[str, int] = field(default_factory=dict)
    page_items: int = 100
    faults: list[Fault] = field(default_factory=list)
    raw: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    connections: int = 0
    released: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which a command finds it."""
        return {
            "TALLYHOOK_GATEWAY_API_URL": self.url,
            "TALLYHOOK_GATEWAY_API_KEY": KEY,
            "TALLYHOOK_GATEWAY_API_REQUESTS_PER_SECOND": "1000",
            "TALLYHOOK_GATEWAY_API_RETRY_MAX_SECONDS": "0.05",
        }

    def answer(self, path: str, query: Mapping[str, list[str]]) -> bytes | None:
        """The right answer; None for what is unknown."""
        parts = path.removeprefix("/v1/pay/").split("/")
        limit = min(int(query.get("limit", ["100"])[0]), self.page_items)
        if path in self.raw:
            return self.raw[path]
        if parts == ["events"]:
            since = int(query["since_sequence"][0])
            wanted = [body for number, body in sorted(self.events.items()) if number > since]
            return b'{"data": [%s], "has_more": %s}' % (b", ".join(wanted[:limit]), _bool(len(wanted) > limit))
        if parts == ["balance"]:
            members = {f"{bucket}_minor": amount for bucket, amount in self.balance.items()}
            return json.dumps({"object": "balance", "currency": "THB"} | members).encode()
        listed = {"deposits": self.deposits, "withdrawals": self.withdrawals}.get(parts[0], [])
        if len(parts) == 2 and parts != ["balance", "transactions"]:
            found = [entity for entity in listed if entity["id"] == unquote(parts[1])]
            return json.dumps(found[0]).encode() if found else None
        if parts == ["balance", "transactions"]:
            listed = self.transactions
        after = query.get("starting_after", [""])[0]
        start = next((place + 1 for place, entity in enumerate(listed) if entity["id"] == after), 0)
        page = listed[start : start + limit]
        return json.dumps({"data": page, "has_more": len(listed) > start + limit}).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    gateway: TinyGateway

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in the middle is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        """One connection."""
        super().setup()
        self.server.gateway.connections += 1

    def do_GET(self) -> None:
        """One request."""
        gateway, parts = self.server.gateway, urlsplit(self.path)
        gateway.asked.append(self.path)
        if gateway.faults:
            self._fail(gateway.faults.pop(0))
            return
        if self.headers["Authorization"] != f"Bearer {KEY}":
            self._send(401, b'{"title": "unknown key"}')
            return
        body = gateway.answer(parts.path, parse_qs(parts.query))
        self._send(404 if body is None else 200, body or b'{"title": "no such id"}')

    def _fail(self, fault: Fault) -> None:
        if fault.hang:
            self.server.gateway.released.wait(30)
            self.close_connection = True
            return
        if fault.cut:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"data"')
            self.close_connection = True
            return
        self._send(fault.status, fault.body, fault.headers)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is the library's
        """Nothing is logged."""


def _bool(value: bool) -> bytes:
    return b"true" if value else b"false"


@contextmanager
def tiny_gateway() -> Iterator[TinyGateway]:
    """A gateway that listens on a port of its own."""
    server = _Server(("127.0.0.1", 0), _Handler)
    made = server.gateway = TinyGateway()
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.released.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
