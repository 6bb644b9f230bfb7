"""Worlds delivered over real HTTP to a door that verifies as the product does."""

import asyncio
import socket
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from tallyhook.clock import SystemClock
from tallyhook.errors import UsageError
from tallyhook.gateway.attempts import HttpReceiver
from tallyhook.gateway.plan import Mischief
from tallyhook.gateway.schedule import RetrySchedule
from tallyhook.gateway.signing import SigningKey
from tallyhook.gateway.world.generate import generate
from tests.integration.gateway.door import Door
from tests.integration.gateway.playing import KEY, keys_file, play, playing, setup_for

SIGNED = KEY.sign("evt_1", 1_800_000_000, b"{}")


async def test_every_event_arrives_once_with_its_bytes(tmp_path: Path) -> None:
    """Authentic and within the tolerance, though the events are of another time."""
    world = generate(5, 40)
    async with Door(keys_file(tmp_path)) as door:
        simulator = await play(world, setup_for(door.url))
    assert door.refused == Counter()
    assert Counter(door.ids) == Counter(event.id for event in world.events)
    assert door.accepted == {event.id: event.body for event in world.events}
    counts = simulator.counts
    assert (counts.delivered, counts.pending, counts.lost) == (len(world.events), 0, [])
    assert counts.statuses == {200: len(world.events)}


async def test_mischief_repeats_and_withholds(tmp_path: Path) -> None:
    """Accepted events come again; withheld ones never come; the counts say both."""
    world = generate(6, 40, withhold=6)
    withheld = {event.id for event in world.events if event.never_delivered}
    async with Door(keys_file(tmp_path)) as door:
        simulator = await play(world, setup_for(door.url, mischief=Mischief(reorder=0.5, duplicates=0.3)))
    seen = Counter(door.ids)
    assert set(seen) == {event.id for event in world.events} - withheld
    assert set(seen.values()) == {1, 2}
    assert simulator.counts.purposes["duplicate"] == sum(count - 1 for count in seen.values())
    assert simulator.counts.withheld == len(withheld) == 6


async def test_a_door_that_fails_now_and_then_gets_everything_in_the_end(tmp_path: Path) -> None:
    """Refused twice, cut off, redirected: each event is tried until it is accepted."""
    world = generate(7, 25)
    statuses = (503, 302, 500, 401, 200)
    async with Door(keys_file(tmp_path), lambda _id, attempt: statuses[min(attempt, 5) - 1]) as door:
        simulator = await play(world, setup_for(door.url))
    events = len(world.events)
    assert simulator.counts.statuses == dict.fromkeys(statuses, events)
    assert (simulator.counts.delivered, simulator.counts.lost) == (events, [])


async def test_what_a_door_never_accepts_is_given_up_and_named(tmp_path: Path) -> None:
    """After three attempts of a schedule of three."""
    world = generate(8, 25)
    bad = world.events[3].id
    schedule = RetrySchedule.from_text("0,10,70")
    async with Door(keys_file(tmp_path), lambda event_id, _attempt: 500 if event_id == bad else 200) as door:
        simulator = await play(world, setup_for(door.url, schedule=schedule))
    assert simulator.counts.lost == [bad]
    assert simulator.counts.statuses == {200: len(world.events) - 1, 500: 3}


async def test_nobody_listens(tmp_path: Path) -> None:
    """Attempts without an answer are counted as such, and the simulator ends by itself."""
    with socket.socket() as taken:  # bound and not listening: refused at once
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/webhooks"
        simulator = await play(generate(8, 5), setup_for(url, schedule=RetrySchedule.from_text("0,10")))
    assert set(simulator.counts.statuses) == {0}
    assert len(simulator.counts.lost) == simulator.counts.deliverable


async def test_a_door_that_is_too_slow_has_not_answered(tmp_path: Path) -> None:
    """Whether it says nothing at all or never comes to an end."""

    async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        await writer.drain()
        while await reader.read(1024):
            pass
        writer.close()

    now = int(SystemClock().now().timestamp())
    async with (
        Door(keys_file(tmp_path), lambda _id, _attempt: 0) as silent,
        HttpReceiver(silent.url, concurrency=1, timeout_seconds=0.3) as receiver,
    ):
        assert await receiver.post(b"{}", KEY.sign("evt_1", now, b"{}")) == 0
        assert silent.ids == ["evt_1"]
    server = await asyncio.start_server(dripping, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with HttpReceiver(url, concurrency=1, timeout_seconds=0.3) as receiver:
            assert await receiver.post(b"{}", SIGNED) == 0


async def test_a_redirect_is_an_answer_and_not_followed(tmp_path: Path) -> None:
    """The gateway posts where it was told to, and nowhere else."""
    reached: list[bytes] = []

    async def redirecting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(redirecting, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/here"
        async with HttpReceiver(url, concurrency=1) as receiver:
            assert await receiver.post(b"{}", SIGNED) == 307
    assert len(reached) == 1
    assert reached[0].startswith(b"POST /here ")


async def test_a_second_key_takes_over_and_the_door_knows_it(tmp_path: Path) -> None:
    """Both public keys are in the file before the second signs, so that nothing is refused."""
    world, path = generate(9, 40), keys_file(tmp_path)
    async with Door(path) as door:
        setup = setup_for(
            door.url,
            time_factor=100_000.0,
            rotate_after=timedelta(hours=6),
            keyring_file=path,
            key_lead_seconds=0.0,
        )
        simulator = await play(world, setup)
    assert door.refused == Counter()
    (second,) = set(simulator.counts.by_key) - {KEY.key_id}
    used = [arrival.key_id for arrival in door.arrivals]
    assert Counter(used) == {"first": used.index(f"sim-{second}"), f"sim-{second}": simulator.counts.by_key[second]}


async def test_an_unknown_key_is_refused_and_nothing_gets_lost_silently(tmp_path: Path) -> None:
    """401 all over: each event is counted as given up."""
    world = generate(9, 5)
    async with Door(keys_file(tmp_path)) as door:
        setup = setup_for(door.url, key=SigningKey(b"x" * 32), schedule=RetrySchedule.from_text("0,10"))
        simulator = await play(world, setup)
    assert door.refused == {"signature": 2 * len(world.events)}
    assert len(simulator.counts.lost) == len(world.events)


async def test_a_stop_in_the_middle_leaves_the_rest_pending(tmp_path: Path) -> None:
    """The attempts on their way are counted; the simulator ends soon."""
    world = generate(5, 40)
    async with Door(keys_file(tmp_path)) as door:
        async with playing(world, setup_for(door.url, time_factor=1.0)) as running:
            await asyncio.wait_for(door.reached.wait(), 10)
        counts = running.simulator.counts
    assert not running.ended.is_set()
    assert counts.delivered == len(door.accepted) > 0
    assert counts.pending == len(world.events) - counts.delivered > 0


async def test_a_second_run_goes_on_where_the_first_was_stopped(tmp_path: Path) -> None:
    """With a journal no accepted event is sent again, but for what was on its way; all arrive."""
    world, journal = generate(5, 40), tmp_path / "journal"
    async with Door(keys_file(tmp_path)) as door:
        setup = setup_for(door.url, time_factor=3600.0, journal_file=journal)
        async with playing(world, setup) as running:
            await asyncio.wait_for(door.reached.wait(), 10)
        first = set(door.accepted)
        assert 0 < len(first) < len(world.events)
        assert running.simulator.counts.pending == len(world.events) - len(first)
        simulator = await play(world, setup_for(door.url, journal_file=journal))
        assert Counter(door.ids) == Counter(event.id for event in world.events)
        counts = simulator.counts
        assert (counts.delivered, counts.pending) == (len(world.events), 0)
        assert counts.attempts == len(world.events) - len(first)
        done = await play(world, setup_for(door.url, journal_file=journal))
        assert (done.counts.attempts, done.counts.delivered) == (0, len(world.events))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8080",
        "ftp://127.0.0.1/",
        "http://",
        "http://h:0/",
        "http://h:99999/",
        "http://h/ก",
        "http://h/ x",
    ],
)
def test_what_is_no_url_is_refused_before_anything_is_sent(url: str) -> None:
    """With the option's name."""
    with pytest.raises(UsageError, match="--target"):
        setup_for(url)


def test_the_second_key_is_public_for_a_while_before_it_signs(tmp_path: Path) -> None:
    """A virtual time that reaches the rotation too soon starts later; another starts at once."""
    path = keys_file(tmp_path)
    seconds = [
        setup_for("http://127.0.0.1:1/", time_factor=factor, keyring_file=path, rotate_after=after).head_start_seconds
        for factor, after in ((3600.0, timedelta(hours=4)), (3600.0, timedelta(hours=100)), (1.0, None))
    ]
    assert seconds == [6.0, 0.0, 0.0]


def test_a_rotation_without_a_keyring_file_is_refused() -> None:
    """Nobody would know the second key."""
    with pytest.raises(UsageError, match="--keyring-file"):
        setup_for("http://127.0.0.1:1/", rotate_after=timedelta(hours=1))
