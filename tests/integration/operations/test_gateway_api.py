"""The client of the gateway's API: patient with what passes, plain about what does not, silent about the key."""

import json
import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pydantic import SecretStr

from tallyhook.clock import SystemClock
from tallyhook.errors import SettingsError
from tallyhook.operations import gateway_http
from tallyhook.operations.gateway_api import GatewayApi
from tallyhook.operations.gateway_http import (
    GatewayHttp,
    GatewayRefused,
    GatewayUnavailable,
    Stopped,
    UnexpectedAnswer,
)
from tallyhook.settings import GatewayApiSettings
from tests.integration.operations.tiny_gateway import KEY, Fault, TinyGateway, tiny_gateway


def client(gateway: TinyGateway, stopping: threading.Event | None = None, key: str = KEY, **more: float) -> GatewayApi:
    """A client that waits little."""
    values = {"timeout_seconds": 5.0, "retry_max_seconds": 0.05, "requests_per_second": 1000.0} | more
    settings = GatewayApiSettings(url=gateway.url, key=SecretStr(key), **values)  # type: ignore[arg-type]
    return GatewayApi(GatewayHttp(settings, clock=SystemClock(), stopping=stopping or threading.Event()))


def event(number: int) -> bytes:
    """An event's JSON, with blanks that must stay."""
    return b'{"id" :  "evt_%d", "sequence": %d}' % (number, number)


def test_pages_of_events_go_on_behind_the_last_one(gateway: TinyGateway) -> None:
    """Their bytes are those of the answer; one connection serves them all."""
    gateway.events = {number: event(number) for number in range(1, 251)}
    api, since, found = client(gateway), 0, []
    while True:
        page = api.events(since)
        found += page.events
        since = page.last
        if page.ends:
            break
    assert [listed.raw for listed in found] == [event(number) for number in range(1, 251)]
    assert [listed.sequence for listed in found] == list(range(1, 251))
    assert gateway.asked == [f"/v1/pay/events?since_sequence={since}&limit=100" for since in (0, 100, 200)]
    assert gateway.connections == 1


def test_lists_of_objects_and_single_ones(gateway: TinyGateway) -> None:
    """In the gateway's order; an id may hold anything."""
    strange = "ฝาก/ 1?#%"
    gateway.deposits = [{"id": f"dep_{number}", "version": number} for number in range(5)] + [{"id": strange}]
    gateway.page_items = 2
    api = client(gateway)
    assert [[found.id for found in page] for page in api.pages("deposits")] == [
        ["dep_0", "dep_1"],
        ["dep_2", "dep_3"],
        ["dep_4", strange],
    ]
    found = api.order("deposits", strange)
    assert found is not None
    assert json.loads(found.raw) == {"id": strange}
    assert api.order("deposits", "dep_none") is None
    assert list(api.pages("withdrawals")) == [[]]


def test_the_balance_by_bucket(gateway: TinyGateway) -> None:
    """Whatever buckets there are."""
    gateway.balance = {"pending": 5, "available": -7, "locked": 0}
    assert client(gateway).balance() == gateway.balance


@pytest.mark.parametrize(
    "faults",
    [
        [Fault(429)] * 3,
        [Fault(500), Fault(503, {"Retry-After": "0"}), Fault(502)],
        [Fault(200, cut=True)],
    ],
    ids=["429", "5xx", "cut off"],
)
def test_what_passes_is_waited_out(gateway: TinyGateway, faults: list[Fault]) -> None:
    """And the answer is the right one in the end."""
    gateway.faults = list(faults)
    gateway.events = {1: event(1)}
    assert [listed.sequence for listed in client(gateway).events(0).events] == [1]
    assert len(gateway.asked) == len(faults) + 1


def test_a_silent_gateway_is_asked_again(gateway: TinyGateway) -> None:
    """After the time-out, on another connection."""
    gateway.faults = [Fault(0, hang=True)]
    gateway.events = {1: event(1)}
    assert client(gateway, timeout_seconds=0.3).events(0).last == 1
    assert gateway.connections == 2


def test_tries_are_bounded(gateway: TinyGateway) -> None:
    """It gives up with what the gateway said last."""
    gateway.faults = [Fault(503, body=b'{"title": "maintenance\\u001b[2J", "detail": "back soon"}')] * 50
    with pytest.raises(GatewayUnavailable, match=r"in 4 tries: 503 maintenance\?\[2J: back soon"):
        client(gateway, attempts=4).events(0)
    assert len(gateway.asked) == 4


def test_nobody_listens() -> None:
    """A closed port is told as such."""
    with tiny_gateway() as gone:
        pass
    with pytest.raises(GatewayUnavailable, match="ConnectionRefusedError"):
        client(gone, attempts=2).balance()


@pytest.mark.parametrize(
    "header",
    [lambda: "120", lambda: format_datetime(datetime.now(UTC) + timedelta(seconds=120))],
    ids=["seconds", "date"],
)
def test_a_long_retry_after_ends_it(gateway: TinyGateway, header: Callable[[], str]) -> None:
    """It is not asked before the time that it named, and nobody waits for that long."""
    gateway.faults = [Fault(429, {"Retry-After": header()})]
    with pytest.raises(GatewayUnavailable, match=r"come again in 1[12]\d s"):
        client(gateway).balance()
    assert len(gateway.asked) == 1


def test_a_short_retry_after_is_kept(gateway: TinyGateway) -> None:
    """The next try comes no earlier."""
    gateway.faults = [Fault(429, {"Retry-After": "1"})]
    gateway.balance = {"available": 1}
    began = time.monotonic()
    client(gateway, retry_max_seconds=2.0).balance()
    assert time.monotonic() - began >= 1.0


def test_the_rate_is_bounded(gateway: TinyGateway) -> None:
    """Six requests at fifty a second take a tenth of a second at least."""
    gateway.balance = {"available": 1}
    api = client(gateway, requests_per_second=50.0)
    began = time.monotonic()
    for _ in range(6):
        api.balance()
    assert time.monotonic() - began >= 0.1


def test_stopping_ends_a_wait(gateway: TinyGateway) -> None:
    """At once, whatever Retry-After says."""
    gateway.faults = [Fault(429, {"Retry-After": "60"})]
    stopping = threading.Event()
    threading.Timer(0.2, stopping.set).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        client(gateway, stopping, retry_max_seconds=100.0).balance()
    assert time.monotonic() - began < 10


def test_a_refused_key_is_not_tried_again_and_never_told(
    gateway: TinyGateway, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither in the message nor in a log."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises(GatewayRefused, match="TALLYHOOK_GATEWAY_API_KEY") as refused:
        client(gateway, key="wrong_and_secret").balance()
    assert len(gateway.asked) == 1
    assert "wrong_and_secret" not in str(refused.value) + caplog.text


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "กุญแจ", ""])
def test_a_key_that_cannot_be_sent_is_not_told_either(gateway: TinyGateway, key: str) -> None:
    """http.client would repeat it in its own error."""
    with pytest.raises(SettingsError, match="visible ASCII") as refused:
        client(gateway, key=key)
    assert not key or key not in str(refused.value)


def test_it_follows_nobody_elsewhere(gateway: TinyGateway) -> None:
    """A redirection would carry the key to another host."""
    gateway.faults = [Fault(302, {"Location": "http://127.0.0.1:9/"})]
    with pytest.raises(GatewayRefused, match="302"):
        client(gateway).balance()


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("events", b"[]", "is no page"),
        ("events", b'{"data": [{"sequence": 5}, {"sequence": 5}], "has_more": false}', "not ascending"),
        ("events", b'{"data": [{"sequence": 1}], "has_more": false}', "not ascending"),
        ("events", b'{"data": [{"id": "evt"}], "has_more": false}', "without a number"),
        ("events", b'{"data": [], "has_more": true}', "empty page"),
        ("events", b'{"data": [%s], "has_more": true}' % b",".join([b"{}"] * 101), "101 items"),
        ("events", b"[" * 100_000, "is no page"),
        ("balance", b'{"object": "balance"}', "0 members"),
        ("balance", b'{"pending_minor": 1.5}', "cannot be read"),
    ],
)
def test_other_shapes_are_told_and_lead_nowhere(gateway: TinyGateway, path: str, body: bytes, told: str) -> None:
    """What is assumed is checked: no endless list, no number that is guessed."""
    gateway.raw = {f"/v1/pay/{path}": body}
    api = client(gateway)
    with pytest.raises(UnexpectedAnswer, match=told):
        api.events(4) if path == "events" else api.balance()


def test_a_list_that_goes_in_a_circle_ends(gateway: TinyGateway) -> None:
    """The page behind an object may not end with it."""
    gateway.raw = {"/v1/pay/deposits": b'{"data": [{"id": "dep_1"}], "has_more": true}'}
    with pytest.raises(UnexpectedAnswer, match="for ever"):
        list(client(gateway).pages("deposits"))


def test_an_endless_answer_is_cut(gateway: TinyGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes are counted as they come."""
    monkeypatch.setattr(gateway_http, "ANSWER_BYTES_MAX", 100_000)
    gateway.raw = {"/v1/pay/balance": b" " * 1_000_000}
    with pytest.raises(UnexpectedAnswer, match="100000 bytes"):
        client(gateway).balance()
