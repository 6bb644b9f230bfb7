"""The simulated gateway's API of a world whose day is over, in this process."""

import asyncio
import secrets
import threading
from concurrent.futures import Future
from types import TracebackType

from tallyhook.gateway.api.books import Books
from tallyhook.gateway.api.doors import FaultDoor, KeyDoor
from tallyhook.gateway.api.pages import Pages
from tallyhook.gateway.api.server import ApiServer
from tallyhook.gateway.world.model import World

START_SECONDS = 10.0
STOP_SECONDS = 10.0


class WorldApi:
    """A context in which the API answers on a port of 127.0.0.1, to whoever has `key`; on a thread of its own.

    Raises:
        TallyhookError: no port can be opened.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.key = secrets.token_urlsafe(32)
        self.url = ""
        self._started: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=self._run, name="gateway-api", daemon=True)

    def __enter__(self) -> "WorldApi":
        self._thread.start()
        self.url, self._loop, self._stop = self._started.result(START_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as failure:  # noqa: BLE001  whoever waits for the start is told, whatever it was
            if not self._started.done():
                self._started.set_exception(failure)

    async def _serve(self) -> None:
        stop = asyncio.Event()
        async with ApiServer(
            "127.0.0.1",
            0,
            pages=Pages(Books(self._world), lambda: self._world.ended_at),
            control=None,
            key_door=KeyDoor(self.key),
            fault_door=FaultDoor(0.0, self._world.seed),
        ) as server:
            self._started.set_result((server.url, asyncio.get_running_loop(), stop))
            await stop.wait()
