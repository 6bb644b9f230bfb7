"""HTTP/1.1 on real sockets: what cannot be read, what is too large or too slow, and what a connection may do."""

import json
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Message

from schemas.topics import TopicNames
from tests.integration.ingress.conftest import Start
from tests.integration.ingress.events import event
from tests.integration.ingress.process import IngressProcess, signed
from tests.integration.ingress.raw import connected, ended, head, read_answer, seconds_until_answer

Records = Callable[[str], list[Message]]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"POST /webhooks HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"POST /webhooks HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"POST /webhooks HTTP/1.1\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabc",
        b"POST /webhooks HTTP/1.1\r\ncontent-length: -3\r\n\r\nabc",
        b"POST /webhooks HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\nabc",
        b"POST /webhooks HTTP/1.1\r\nx: a\r\n folded\r\ncontent-length: 0\r\n\r\n",
        b"POST /webhooks HTTP/1.1\r\nx: a\x00b\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /webhooks HTTP/1.1\r\n" + b"".join(b"h%d: 1\r\n" % n for n in range(65)) + b"\r\n",
        b"POST /webhooks HTTP/1.1\r\nx: " + b"y" * 16_400 + b"\r\n\r\n",
        b"POST /webhooks HTTP/1.1\r\nx: " + b"y" * 400_000,
    ],
)
def test_what_cannot_be_read_is_400_and_ends_the_connection(ingress: IngressProcess, request_bytes: bytes) -> None:
    """Length beside transfer coding, repeated lengths, folded lines, floods of headers, other protocols."""
    with connected(ingress.port) as connection:
        connection.sendall(request_bytes)
        status, headers, _ = read_answer(connection)
        assert (
            status,
            headers["connection"],
            headers["content-type"],
        ) == (400, "close", "application/problem+json")
        assert ended(connection)
    assert ingress.post(event()).status == 200


def test_a_flood_of_signatures_is_refused_at_once(ingress: IngressProcess) -> None:
    """5,000 entries cost no verification."""
    body = event()
    value = " ".join([signed(ingress, body)["webhook-signature"]] * 5000)

    with connected(ingress.port) as connection:
        request = head("/webhooks", {"webhook-signature": value, "content-length": str(len(body))}) + body
        connection.sendall(request)
        seconds, status = seconds_until_answer(connection)

    assert 400 <= status < 500
    assert seconds < 1.0


def test_a_streamed_body_is_counted(ingress: IngressProcess) -> None:
    """A chunked body is refused when it passes the limit, before it ends, and the sender can read the answer."""
    with connected(ingress.port) as connection:
        connection.sendall(head("/webhooks", {"transfer-encoding": "chunked"}))
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        for _ in range(6):
            connection.sendall(chunk)
        status, headers, _ = read_answer(connection)
        assert (status, headers["connection"]) == (413, "close")


def test_a_slow_body_is_refused_in_time(topics: TopicNames, start: Start) -> None:
    """The time is that of the whole body: single bytes now and then do not lengthen it."""
    ingress = start(TALLYHOOK_INGRESS_BODY_TIMEOUT_SECONDS="1")
    with connected(ingress.port) as connection:
        connection.sendall(head("/webhooks", {"content-length": "100"}))
        connection.settimeout(0.2)
        began = time.monotonic()
        answer = None
        while answer is None:
            try:
                answer = read_answer(connection)
            except TimeoutError:
                connection.sendall(b"x")
        assert (answer[0], answer[1]["connection"]) == (400, "close")
        assert 0.8 < time.monotonic() - began < 5
    assert ingress.metric("tallyhook_ingress_refused_total", reason="body_too_slow") == 1


def test_an_answer_to_head_has_no_body(ingress: IngressProcess) -> None:
    """A body would be read as the beginning of the next answer on the connection."""
    with connected(ingress.port) as connection:
        for path, status in (("/livez", 200), ("/webhooks", 405), ("/readyz", 200)):
            connection.sendall(head(path, {}, "HEAD"))
            assert read_answer(connection)[0] == status
        connection.sendall(head("/livez", {}, "GET"))
        assert json.loads(read_answer(connection)[2])["status"] == "ok"


def test_pipelined_requests_are_answered_in_their_order(ingress: IngressProcess) -> None:
    """Several requests in one segment have one answer each, and a flood of them ends the connection."""
    body = event()
    good = signed(ingress, body) | {"content-length": str(len(body))}
    with connected(ingress.port) as connection:
        connection.sendall(head("/webhooks", good) + body + head("/livez", {}, "GET") + head("/nowhere", {}, "GET"))
        data = b""
        while data.count(b"HTTP/1.1 ") < 3:
            data += connection.recv(65536)
        assert [part[:3] for part in data.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"404"]


def test_upgrades_are_ignored(ingress: IngressProcess) -> None:
    """A client that offers h2c is served with HTTP/1.1 on the same connection."""
    body = event()
    offer = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAMAAABkAAQCAAAAAAIAAAAA"}
    good = signed(ingress, body) | {"content-length": str(len(body))}
    with connected(ingress.port) as connection:
        for _ in range(2):
            connection.sendall(head("/webhooks", good | offer) + body)
            assert read_answer(connection)[0] == 200


def test_a_sender_that_waits_for_leave_to_send_gets_it_or_an_answer(ingress: IngressProcess) -> None:
    """Expect: 100-continue: leave for what can be taken, the refusal at once for what cannot."""
    body = event()
    waiting = signed(ingress, body) | {"content-length": str(len(body)), "expect": "100-continue"}
    with connected(ingress.port) as connection:
        connection.sendall(head("/webhooks", waiting))
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert read_answer(connection)[0] == 200
    with connected(ingress.port) as connection:
        connection.sendall(head("/elsewhere", waiting))
        assert read_answer(connection)[0] == 404
