"""Many connections that send nothing, or too slowly: bounded in number and memory, and honest senders are served."""

import contextlib
import resource
import socket
import time
from collections.abc import Iterator

import psutil
import pytest

from tallyhook.gateway.signing import SigningKey
from tallyhook.settings import Installation
from tests.hostile.doors import DoorUnderTest, open_door
from tests.integration.ingress.events import event
from tests.integration.ingress.raw import connected, head

ALLOWED = 1_001  # one request in flight and the spare ones
HOSTILE = 1_500
GROWTH_BYTES = 48 << 20
HELD_BYTES = 16 << 20
HALF_A_HEAD = b"POST /webhooks HTTP/1.1\r\nhost: x\r\nx-slow: " + b"y" * 8_000
BEGINNINGS = {"silent": b"", "half a line": b"PO", "half a head": HALF_A_HEAD}


@pytest.fixture(scope="module")
def narrow(kafka_bootstrap: str, own_installation: Installation) -> Iterator[DoorUnderTest]:
    """A door that has room for as few connections as it can be told."""
    with open_door(
        kafka_bootstrap, own_installation, SigningKey.generate(), TALLYHOOK_INGRESS_MAX_IN_FLIGHT="1"
    ) as opened:
        yield opened


def sockets_of(door: DoorUnderTest) -> int:
    """Connections that the process holds at its port."""
    found = psutil.Process(door.process.process.pid).net_connections("tcp")
    return sum(1 for one in found if one.status == "ESTABLISHED" and one.laddr[1] == door.port)


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_honest_requests_are_served_beside_a_crowd_that_waits(narrow: DoorUnderTest, beginning: str) -> None:
    """Half as many again as it has room for: the oldest that has sent nothing whole gives its place to the next."""
    _allow_sockets(HOSTILE + 500)
    process = psutil.Process(narrow.process.process.pid)
    before = process.memory_info().rss
    with contextlib.ExitStack() as stack:
        for number in range(HOSTILE):
            crowd = stack.enter_context(socket.create_connection(("127.0.0.1", narrow.port), timeout=10))
            with contextlib.suppress(ConnectionError):
                crowd.sendall(BEGINNINGS[beginning])
            if number % 100 == 99:
                assert narrow.process.post(event(f"evt_{number}")).status == 200
        assert sockets_of(narrow) <= ALLOWED
        assert process.memory_info().rss - before < GROWTH_BYTES
        assert [narrow.process.post(event()).status for _ in range(20)] == [200] * 20
    _await_few_sockets(narrow)
    assert narrow.process.post(event()).status == 200


def test_honest_requests_are_served_beside_slow_bodies(kafka_bootstrap: str, own_installation: Installation) -> None:
    """Four times as many half bodies as requests are let in at once: the ones longest on their way give way."""
    allowed, hostile = 50, 200
    with (
        open_door(
            kafka_bootstrap,
            own_installation,
            SigningKey.generate(),
            TALLYHOOK_INGRESS_MAX_IN_FLIGHT=str(allowed),
            TALLYHOOK_INGRESS_MAX_HELD_BYTES=str(HELD_BYTES),
        ) as door,
        contextlib.ExitStack() as stack,
    ):
        process = psutil.Process(door.process.process.pid)
        before = process.memory_info().rss
        for number in range(hostile):
            slow = stack.enter_context(connected(door.port))
            with contextlib.suppress(ConnectionError):
                slow.sendall(head("/webhooks", {"content-length": "262144"}) + b"x" * 262_000)
            if number % 20 == 19:
                assert door.process.post(event(f"evt_{number}")).status == 200
        assert 0 < door.process.metric("tallyhook_ingress_in_flight") <= allowed
        assert process.memory_info().rss - before < HELD_BYTES + GROWTH_BYTES
        assert (
            door.process.metric("tallyhook_ingress_refused_total", reason="in_flight")
            >= hostile - HELD_BYTES // 262_000
        )


def _allow_sockets(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def _await_few_sockets(door: DoorUnderTest) -> None:
    deadline = time.monotonic() + 20
    while sockets_of(door) > 20:
        assert time.monotonic() < deadline
        time.sleep(0.05)
