"""The listening socket and its connections, and how both end."""

import asyncio

from ingress.connection import Connection
from ingress.handler import Handler
from ingress.limits import Limits
from ingress.refusals import Refused
from tallyhook.errors import TallyhookError

_BACKLOG = 4096


class Server:
    """Listens, bounds the connections, and ends them without cutting a request off.

    Args:
        handler: answers.
        limits: the bounds of each connection.
        max_connections: further ones are told to come again and closed.
    """

    def __init__(self, handler: Handler, limits: Limits, *, max_connections: int) -> None:
        self._handler, self.limits, self._max_connections = handler, limits, max_connections
        self._connections: set[Connection] = set()
        self._listener: asyncio.Server | None = None
        self._empty = asyncio.Event()
        self._empty.set()
        self.ending = self.closing = False

    async def start(self, host: str, port: int) -> int:
        """The port it listens on (0 takes a free one); raises TallyhookError when it cannot be opened."""
        loop = asyncio.get_running_loop()
        try:
            self._listener = await loop.create_server(
                lambda: Connection(self, self._handler, loop), host, port, backlog=_BACKLOG
            )
        except OSError as failure:
            raise TallyhookError(
                f"{host}:{port} cannot be opened: {failure.strerror}; set TALLYHOOK_INGRESS_HOST or _PORT"
            ) from failure
        return int(self._listener.sockets[0].getsockname()[1])

    def opened(self, connection: Connection) -> bool:
        """Takes a connection, unless there are too many; one that is not taken ends by itself."""
        if len(self._connections) >= self._max_connections:
            return False
        self._connections.add(connection)
        self._empty.clear()
        return True

    def closed(self, connection: Connection) -> None:
        """Forgets a connection."""
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()

    def announce_end(self) -> None:
        """From now on each answer ends its connection; new ones are still taken."""
        self.ending = True

    async def stop(self, timeout_seconds: float) -> int:
        """Stops listening and waits for what is under way; gives the connections that had to be cut.

        Half of a second before the time is over, what has not arrived whole is refused with 503.
        """
        self.ending = self.closing = True
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._connections):
            connection.end_if_idle()
        if await self._wait_empty(max(0.0, timeout_seconds - 0.5)):
            return 0
        for connection in list(self._connections):
            connection.give_up(Refused("shutting_down", "the request was not whole when the process had to end"))
        if await self._wait_empty(min(0.5, timeout_seconds)):
            return 0
        return len(self._connections)

    async def _wait_empty(self, timeout_seconds: float) -> bool:
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True
