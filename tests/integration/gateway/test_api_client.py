"""The API and the client that `backfill` and `reconcile` use: both sides assume the same shapes."""

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path

from pydantic import SecretStr

from tallyhook.clock import SystemClock
from tallyhook.gateway.world.generate import generate
from tallyhook.gateway.world.model import World
from tallyhook.operations.gateway_api import GatewayApi
from tallyhook.operations.gateway_http import GatewayHttp
from tallyhook.settings import GatewayApiSettings
from tests.integration.gateway.door import Door
from tests.integration.gateway.playing import API_KEY, keys_file, playing, setup_for


def read_all(url: str, world: World) -> None:
    """Everything that the client can ask for, against the world's own end."""
    settings = GatewayApiSettings(
        url=url, key=SecretStr(API_KEY), attempts=40, retry_max_seconds=5.0, requests_per_second=1000.0
    )
    api = GatewayApi(GatewayHttp(settings, clock=SystemClock(), stopping=threading.Event()))
    since, events = 0, list[tuple[int, bytes]]()
    while True:
        page = api.events(since)
        events += [(event.sequence, event.raw) for event in page.events]
        since = page.last
        if page.ends:
            break
    assert events == [(event.sequence, event.body) for event in world.events]
    movements = [(moved.id, moved.raw) for page in api.pages("balance/transactions") for moved in page]
    assert movements == [(moved.id, moved.body) for moved in world.transactions]
    for listing, kind in (("deposits", "deposit_order"), ("withdrawals", "withdrawal_order")):
        listed = {one.id: one.raw for page in api.pages(listing) for one in page}  # type: ignore[arg-type]
        mine = {one.id: one.states[-1].snapshot for one in world.objects.values() if one.kind == kind}
        assert {name: json.loads(raw) for name, raw in listed.items()} == {
            name: json.loads(raw) for name, raw in mine.items()
        }
        for name in list(mine)[:5]:
            one = api.order(listing, name)  # type: ignore[arg-type]
            assert one is not None
            assert json.loads(one.raw) == json.loads(mine[name])
    assert api.order("deposits", "dep_nobody") is None
    assert api.balance() == dict(world.balance_at(world.ended_at))


async def test_everything_that_it_lists_is_read_also_when_a_fifth_of_the_answers_fails(tmp_path: Path) -> None:
    """Events, movements, orders, the balance; 429 and 500 in between."""
    world = generate(21, 60, withhold=4)
    async with Door(keys_file(tmp_path)) as door:
        setup = setup_for(door.url)
        setup = replace(setup, api=replace(setup.api, fault_share=0.2))
        async with playing(world, setup) as running:
            await running.ended.wait()
            await asyncio.to_thread(read_all, running.url, world)
