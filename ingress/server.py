"""The listening socket and its connections, and how both end."""

import asyncio

from ingress.connection import Connection, Welcome
from ingress.handler import Handler
from ingress.held_bytes import HeldBytes
from ingress.limits import Limits
from ingress.refusals import Refused
from tallyhook.errors import TallyhookError

_BACKLOG = 4096
_TURNED_AWAY_MAX = 64
"""Connections beyond the bound that are told so and given time to read it; further ones just end."""


class Server:
    """Listens, bounds the connections, and ends them without cutting a request off.

    Args:
        handler: answers.
        limits: the bounds of each connection.
        max_connections: a further one takes the place of the one that has kept the door waiting longest; where none
            does, it is told to come again and closed.
    """

    def __init__(self, handler: Handler, limits: Limits, *, max_connections: int) -> None:
        self._handler, self.limits, self._max_connections = handler, limits, max_connections
        self.held = HeldBytes(limits.max_held_bytes, self.cut_oldest_body)
        self._connections: set[Connection] = set()
        # Those whose turn it is to send, and among them those within a body: the one that turned first stands first.
        self._waiting: dict[Connection, None] = {}
        self._bodies: dict[Connection, None] = {}
        self._turned_away: set[Connection] = set()
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

    def opened(self, connection: Connection) -> Welcome:
        """Takes a connection where there is room or can be made; one that is not taken ends by itself."""
        if len(self._connections) >= self._max_connections and not self._make_room():
            if len(self._turned_away) >= _TURNED_AWAY_MAX:
                return "cut off"
            self._turned_away.add(connection)
            return "turned away"
        self._connections.add(connection)
        self._empty.clear()
        return "taken"

    def closed(self, connection: Connection) -> None:
        """Forgets a connection."""
        self._connections.discard(connection)
        self._turned_away.discard(connection)
        self._waiting.pop(connection, None)
        self._bodies.pop(connection, None)
        if not self._connections:
            self._empty.set()

    def turned(self, connection: Connection, phase: str) -> None:
        """Notes since when a connection keeps the door waiting."""
        self._waiting.pop(connection, None)
        self._bodies.pop(connection, None)
        if connection in self._connections and phase != "answering":
            self._waiting[connection] = None
            if phase == "body":
                self._bodies[connection] = None

    def cut_oldest_body(self) -> bool:
        """Refuses the body that has been on its way longest, so that another request can be taken; false if none is.

        An honest body is whole within milliseconds, so it is those that are sent slowly that give way.
        """
        oldest = next((known for known in self._bodies if not known.feeding), None)
        if oldest is None:
            return False
        del self._bodies[oldest]
        oldest.give_up(Refused("in_flight", "the body was not whole when its place was needed"))
        return True

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

    def _make_room(self) -> bool:
        """Ends the connection that has kept the door waiting longest."""
        oldest = next((known for known in self._waiting if known.waiting), None)
        if oldest is None:
            return False
        self.closed(oldest)
        oldest.make_room()
        return True

    async def _wait_empty(self, timeout_seconds: float) -> bool:
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True
