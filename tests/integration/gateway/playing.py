"""A simulator inside of the test's own loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tallyhook.clock import SystemClock
from tallyhook.gateway.schedule import RetrySchedule
from tallyhook.gateway.signing import SigningKey
from tallyhook.gateway.simulator import Api, Setup, Simulator
from tallyhook.gateway.world.model import World
from tallyhook.settings.gateway_sim import DEFAULT_RETRY_SECONDS

KEY = SigningKey(b"gateway simulator test key 12345")
API_KEY = "key-of-the-api"
AUTHORIZED = {"Authorization": f"Bearer {API_KEY}"}
PATIENCE_SECONDS = 60.0


def keys_file(folder: Path) -> Path:
    """A file with the first key's public half."""
    path = folder / "public_keys"
    path.write_text(f"first={KEY.public_text()}\n")
    return path


def setup_for(target: str, **changes: Any) -> Setup:
    """Very fast, without mischief."""
    setup = Setup(
        target=target,
        key=KEY,
        api=Api("127.0.0.1", 0, API_KEY),
        time_factor=1_000_000.0,
        schedule=RetrySchedule.from_text(DEFAULT_RETRY_SECONDS),
        concurrency=8,
    )
    return replace(setup, **changes)


@dataclass
class Playing:
    """A running simulator.

    Args:
        ended: set when every delivery has ended.
    """

    simulator: Simulator
    url: str
    stop: asyncio.Event
    ended: asyncio.Event = field(default_factory=asyncio.Event)


async def play(world: World, setup: Setup) -> Simulator:
    """Plays to the end."""
    simulator = Simulator(
        world, setup, SystemClock(), started=lambda _url: None, report=lambda _it: None, ended=lambda _it: None
    )
    await asyncio.wait_for(simulator.run(asyncio.Event()), PATIENCE_SECONDS)
    return simulator


@asynccontextmanager
async def playing(world: World, setup: Setup) -> AsyncIterator[Playing]:
    """Serves until the context ends."""
    loop, stop, ended = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    url: asyncio.Future[str] = loop.create_future()
    simulator = Simulator(
        world,
        replace(setup, serve=True),
        SystemClock(),
        started=url.set_result,
        report=lambda _it: None,
        ended=lambda _it: (loop.call_soon_threadsafe(ended.set), None)[1],
    )
    running = asyncio.create_task(simulator.run(stop))
    running.add_done_callback(lambda _task: url.cancel())  # a simulator that fails to start has no address
    try:
        yield Playing(simulator, await url, stop, ended)
    finally:
        stop.set()
        await asyncio.wait_for(running, PATIENCE_SECONDS)
