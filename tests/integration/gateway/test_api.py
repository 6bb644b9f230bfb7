"""The gateway's REST API over HTTP: the key, pages, errors, faults, resends."""

import os
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest

from tallyhook.errors import TallyhookError
from tallyhook.gateway.schedule import RetrySchedule
from tallyhook.gateway.world.generate import generate
from tests.integration.gateway.door import Door
from tests.integration.gateway.playing import API_KEY, AUTHORIZED, Playing, keys_file, play, playing, setup_for

PROBLEM = "application/problem+json"


async def get(session: aiohttp.ClientSession, url: str, **parameters: Any) -> Any:
    """The JSON of an answer that must be 200."""
    async with session.get(url, params=parameters) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.content_type == "application/json"
        return await answer.json()


async def problem(session: aiohttp.ClientSession, url: str, method: str = "GET") -> tuple[int, str]:
    """Status and detail of an answer that must be a problem."""
    async with session.request(method, url) as answer:
        said = await answer.json(content_type=PROBLEM)
        assert said["status"] == answer.status
        assert said["title"]
        return answer.status, said["detail"]


async def test_the_pages_list_everything_once_all_is_delivered(tmp_path: Path) -> None:
    """Events, movements, deposits and withdrawals, page by page; each object by its id, whatever its letters."""
    world = generate(12, 60, withhold=4)
    async with Door(keys_file(tmp_path)) as door, playing(world, setup_for(door.url)) as running:
        await running.ended.wait()
        async with aiohttp.ClientSession(headers=AUTHORIZED) as session:
            pay = f"{running.url}/v1/pay"
            events: list[dict[str, Any]] = []
            page = {"has_more": True}
            while page["has_more"]:
                since = events[-1]["sequence"] if events else 0
                page = await get(session, f"{pay}/events", since_sequence=since, limit=50)
                assert len(page["data"]) <= 50
                events += page["data"]
            assert [event["id"] for event in events] == [event.id for event in world.events]
            assert len((await get(session, f"{pay}/events"))["data"]) == 100
            assert await get(session, f"{pay}/balance") == {
                "object": "balance",
                "currency": "THB",
                **{f"{name}_minor": minor for name, minor in world.balance_at(world.ended_at).items()},
            }
            movements = await everything(session, f"{pay}/balance/transactions")
            assert [moved["id"] for moved in movements] == [moved.id for moved in world.transactions]
            for path, kind in (("deposits", "deposit_order"), ("withdrawals", "withdrawal_order")):
                listed = await everything(session, f"{pay}/{path}")
                mine = {one.id: one for one in world.objects.values() if one.kind == kind}
                assert {one["id"]: one["version"] for one in listed} == {
                    one.id: one.states[-1].version for one in mine.values()
                }
                for one in listed:
                    assert await get(session, f"{pay}/{path}/{quote(one['id'], safe='')}") == one


async def everything(session: aiohttp.ClientSession, url: str) -> list[dict[str, Any]]:
    """Every item of a list whose pages go on behind an id."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = await get(session, url, limit=20, **cursor)
        found += page["data"]
        if not page["has_more"]:
            return found
        cursor = {"starting_after": found[-1]["id"]}


async def test_the_api_tells_what_has_happened_so_far(tmp_path: Path) -> None:
    """While the virtual time stands near the start, the later events are not there yet."""
    world = generate(12, 60)
    async with (
        Door(keys_file(tmp_path)) as door,
        playing(world, setup_for(door.url, time_factor=1.0)) as running,
        aiohttp.ClientSession(headers=AUTHORIZED) as session,
    ):
        told = await get(session, f"{running.url}/v1/pay/events")
        state = await get(session, f"{running.url}/simulator/state")
        assert 0 < len(told["data"]) < len(world.events)
        assert not told["has_more"]
        assert not state["finished"]
        later = world.events[-1].id
        assert await problem(session, f"{running.url}/simulator/resend/{later}", "POST") == (404, "no such id")


async def test_without_the_key_nothing_is_told(tmp_path: Path) -> None:
    """401 for the pages, the simulator's own paths and paths that do not exist; health is open."""
    async with Door(keys_file(tmp_path)) as door, playing(generate(12, 5), setup_for(door.url)) as running:
        wrong: tuple[dict[str, str], ...] = (
            {},
            {"Authorization": API_KEY},
            {"Authorization": "Bearer x"},
            {"Authorization": "Bearer \xe9"},
        )
        for headers in wrong:
            async with aiohttp.ClientSession(headers=headers) as session:
                for path in ("/v1/pay/balance", "/simulator/state", "/nowhere"):
                    assert (await problem(session, running.url + path))[0] == 401
                assert (await problem(session, f"{running.url}/simulator/resend/x", "POST"))[0] == 401
                for path in ("/livez", "/readyz"):
                    assert await get(session, running.url + path) == {"status": "ok", "pid": os.getpid()}


async def test_errors_are_problems(tmp_path: Path) -> None:
    """Unknown ids and paths, wrong parameters, wrong methods."""
    async with Door(keys_file(tmp_path)) as door, playing(generate(12, 5), setup_for(door.url)) as running:
        await running.ended.wait()
        async with aiohttp.ClientSession(headers=AUTHORIZED) as session:
            pay = f"{running.url}/v1/pay"
            for path in ("/deposits/none", "/withdrawals/none", "/deposits?starting_after=none", "/nowhere"):
                assert (await problem(session, pay + path))[0] == 404
            for query in ("limit=0", "limit=101", "limit=x", "limit=", "since_sequence=1.5", "since_sequence=%D9%A1"):
                status, detail = await problem(session, f"{pay}/events?{query}")
                assert (status, detail.split()[0]) == (400, query.split("=")[0])
            assert (await problem(session, f"{pay}/balance/transactions?starting_after="))[0] == 400
            assert (await problem(session, f"{pay}/balance", "DELETE"))[0] == 405


async def test_faults_come_in_their_share_and_go_away(tmp_path: Path) -> None:
    """429 with Retry-After and 500, on the API's own paths alone."""
    world = generate(12, 5)
    async with Door(keys_file(tmp_path)) as door:
        setup = setup_for(door.url)
        api = type(setup.api)("127.0.0.1", 0, API_KEY, fault_share=0.4)
        async with playing(world, setup_for(door.url, api=api)) as running:
            statuses: Counter[int] = Counter()
            async with aiohttp.ClientSession(headers=AUTHORIZED) as session:
                for _ in range(300):
                    async with session.get(f"{running.url}/v1/pay/balance") as answer:
                        statuses[answer.status] += 1
                        assert (answer.headers.get("Retry-After") == "1") == (answer.status == 429)
                assert set(statuses) == {200, 429, 500}
                assert 130 <= statuses[200] <= 230
                for _ in range(20):
                    await get(session, f"{running.url}/simulator/state")


async def resent(running: Playing, session: aiohttp.ClientSession, event_id: str) -> int:
    """Status of the request to resend."""
    async with session.post(f"{running.url}/simulator/resend/{quote(event_id, safe='')}") as answer:
        return answer.status


async def test_a_resend_by_hand_saves_what_was_given_up(tmp_path: Path) -> None:
    """Of an event that used its attempts, of a delivered one, of one that was never to come."""
    world = generate(13, 25, withhold=1)
    lost = next(event.id for event in world.events if not event.never_delivered)
    withheld = next(event.id for event in world.events if event.never_delivered)
    mended: list[bool] = []
    async with Door(keys_file(tmp_path), lambda i, _n: 200 if mended or i != lost else 503) as door:
        setup = setup_for(door.url, schedule=RetrySchedule.from_text("0,10"))
        async with playing(world, setup) as running, aiohttp.ClientSession(headers=AUTHORIZED) as session:
            await running.ended.wait()
            counts = running.simulator.counts
            assert counts.lost == [lost]
            assert withheld not in door.ids
            mended.append(True)
            for event_id in (lost, withheld):
                assert await resent(running, session, event_id) == 202
                while event_id not in door.accepted:
                    await get(session, f"{running.url}/simulator/state")
            assert await resent(running, session, "evt_nowhere") == 404
            state = await get(session, f"{running.url}/simulator/state")
            while state["attempts"] < len(door.arrivals):
                state = await get(session, f"{running.url}/simulator/state")
    assert (counts.lost, counts.pending) == ([], 0)
    assert counts.purposes["resend"] == 2
    assert state["finished"] is True


async def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    """With the address, before anything is sent."""
    async with Door(keys_file(tmp_path)) as door:
        port = int(door.url.split(":")[2].split("/")[0])
        setup = setup_for(door.url)
        with pytest.raises(TallyhookError, match=f"127.0.0.1:{port}"):
            await play(generate(12, 5), setup_for(door.url, api=type(setup.api)("127.0.0.1", port, API_KEY)))
        assert door.ids == []
