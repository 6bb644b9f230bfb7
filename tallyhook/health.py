"""`/livez`, `/readyz` and `/metrics` for processes that serve nothing else, on a thread and loop of their own."""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence

from aiohttp import web

from tallyhook.errors import TallyhookError
from tallyhook.metrics import Metrics

Reasons = Callable[[], Sequence[str]]


class HealthServer:
    """Serves a process's health; a blocked worker cannot keep it from answering.

    Args:
        host: address to listen on.
        port: TCP port; 0 takes a free one (see `port` after `start`).
        metrics: what `/metrics` shows.
        not_live: why the process should be replaced (empty: it is fine); asked at each `/livez`.
        not_ready: why it cannot do its work now (empty: it can); asked at each `/readyz`.
    """

    def __init__(self, host: str, port: int, metrics: Metrics, *, not_live: Reasons, not_ready: Reasons) -> None:
        self.host, self.port = host, port
        self._metrics, self._not_live, self._not_ready = metrics, not_live, not_ready
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="health", daemon=True)

    def start(self) -> None:
        """Returns once the port listens; raises TallyhookError when it is taken."""
        self._thread.start()
        self._started.wait(timeout=10)
        if self._failure is not None:
            raise TallyhookError(
                f"health port {self.host}:{self.port} cannot be opened: {self._failure.strerror}; choose another port"
            )

    def stop(self) -> None:
        """Closes the port; returns within two seconds."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=2)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except OSError as failure:
            self._failure = failure
            self._started.set()
            return
        self._started.set()
        self._loop.run_forever()

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_get("/livez", self._livez)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._exposition)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, self.host, self.port)
        await site.start()
        if self.port == 0:
            self.port = int(runner.addresses[0][1])

    async def _livez(self, _: web.Request) -> web.Response:
        return _answer(self._not_live())

    async def _readyz(self, _: web.Request) -> web.Response:
        return _answer(self._not_ready())

    async def _exposition(self, request: web.Request) -> web.Response:
        self._metrics.gauge("tallyhook_ready").set(0 if self._not_ready() else 1)
        body, content_type = self._metrics.exposition(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})


def _answer(reasons: Sequence[str]) -> web.Response:
    # The pid tells a supervisor that it is this process which answers, and no other one on the same port.
    if not reasons:
        return web.json_response({"status": "ok", "pid": os.getpid()})
    return web.json_response({"status": "unavailable", "pid": os.getpid(), "reasons": list(reasons)}, status=503)
