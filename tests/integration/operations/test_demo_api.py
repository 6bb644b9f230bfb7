"""The API that the demo's backfill asks."""

import http.client
import json
import threading
from urllib.parse import urlsplit

from pydantic import SecretStr

from tallyhook.clock import SystemClock
from tallyhook.operations.demo_api import WorldApi
from tallyhook.operations.demo_day_story import day, missing_of
from tallyhook.operations.gateway_api import GatewayApi
from tallyhook.operations.gateway_http import GatewayHttp
from tallyhook.settings import GatewayApiSettings


def test_it_lists_the_event_that_is_never_delivered() -> None:
    """To whoever has the key, byte for byte."""
    world = day()
    missing = missing_of(world)
    with WorldApi(world) as served:
        settings = GatewayApiSettings(url=served.url, key=SecretStr(served.key))
        api = GatewayApi(GatewayHttp(settings, clock=SystemClock(), stopping=threading.Event()))
        page = api.events(missing.sequence - 1)
        api.close()
    assert page.events[0].raw == missing.body
    assert [event.sequence for event in page.events] == list(range(missing.sequence, world.events[-1].sequence + 1))


def test_it_lets_nobody_in_without_the_key_and_ends_with_the_context() -> None:
    """Each run has a key of its own, and nothing listens afterwards."""
    with WorldApi(day()) as served, WorldApi(day()) as other:
        address = urlsplit(served.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
        connection.request("GET", "/v1/pay/events", headers={"Authorization": f"Bearer {other.key}"})
        answer = connection.getresponse()
        assert answer.status == 401
        assert json.loads(answer.read())["status"] == 401
        connection.close()
    later = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
    try:
        later.connect()
    except ConnectionRefusedError:
        return
    raise AssertionError("the API still answers")
