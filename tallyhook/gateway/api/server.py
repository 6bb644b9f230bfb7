"""The API's HTTP server."""

from types import TracebackType
from typing import Final

from aiohttp import web

from tallyhook.errors import TallyhookError
from tallyhook.gateway.api.control import Control
from tallyhook.gateway.api.doors import FaultDoor, KeyDoor
from tallyhook.gateway.api.pages import Pages, errors_as_problems

MAX_REQUEST_BYTES: Final = 16_384
SHUTDOWN_SECONDS: Final = 2.0


class ApiServer:
    """A context in which the API answers.

    Args:
        host: address to listen on.
        port: TCP port; 0 takes a free one.
        control: None where nothing is delivered, so that nothing can be sent again.
        key_door: asks for the key, except on the health pages.
        fault_door: stands behind the key.

    Raises:
        TallyhookError: the port cannot be opened.
    """

    def __init__(
        self, host: str, port: int, *, pages: Pages, control: Control | None, key_door: KeyDoor, fault_door: FaultDoor
    ) -> None:
        self._host, self._port = host, port
        app = web.Application(
            middlewares=[errors_as_problems, key_door.middleware, fault_door.middleware],
            client_max_size=MAX_REQUEST_BYTES,
        )
        app.add_routes([*pages.routes(), *(control.routes() if control is not None else ())])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)

    @property
    def url(self) -> str:
        """Its base, without a path."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    async def __aenter__(self) -> "ApiServer":
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as failure:
            await self._runner.cleanup()
            raise TallyhookError(
                f"the gateway's API cannot listen on {self._host}:{self._port}: {failure.strerror}; choose another port"
            ) from failure
        self._port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()
