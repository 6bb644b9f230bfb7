"""A receiver of webhooks for tests: it verifies as the product's door does, and answers by a rule."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from aiohttp import web

from ingress.keyring import Keyring
from ingress.messages import Head, Request
from ingress.refusals import Refused
from ingress.schemes.standard_webhooks import StandardWebhooks
from tallyhook.clock import SystemClock

TOLERANCE_SECONDS = 300.0
BODY_LIMIT = 262_144


@dataclass(frozen=True)
class Arrival:
    """An authentic attempt."""

    event_id: str
    key_id: str
    body: bytes
    status: int


class Door:
    """Listens on a free port of 127.0.0.1.

    Args:
        keys: file of public keys, read again at each request.
        answer: the status for an event id and the number of its authentic attempt, from 1; 0 never answers.
    """

    def __init__(self, keys: Path, answer: Callable[[str, int], int] = lambda _id, _attempt: 200) -> None:
        self._keyring = Keyring(None, keys)
        self._answer = answer
        self._scheme = StandardWebhooks(tolerance_seconds=TOLERANCE_SECONDS, max_signatures=16, max_id_bytes=512)
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.arrivals: list[Arrival] = []
        self.refused: Counter[str] = Counter()
        self.reached = asyncio.Event()
        self.url = ""

    @property
    def ids(self) -> list[str]:
        """Of authentic attempts, in order of arrival."""
        return [arrival.event_id for arrival in self.arrivals]

    @property
    def accepted(self) -> dict[str, bytes]:
        """Bodies by event id of what was answered 2xx."""
        return {arrival.event_id: arrival.body for arrival in self.arrivals if 200 <= arrival.status < 300}

    async def __aenter__(self) -> "Door":
        app = web.Application(client_max_size=BODY_LIMIT)
        app.router.add_post("/webhooks", self._take)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/webhooks"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        assert self._runner is not None
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        headers = tuple((name.lower(), value) for name, value in request.raw_headers)
        whole = Request(Head(request.method, request.path, headers), await request.read())
        self._keyring.reload()
        try:
            vouched = self._scheme.verify(whole, self._keyring.keys, SystemClock().now())
        except Refused as refusal:
            self.refused[refusal.reason] += 1
            return web.Response(status=401)
        event_id = vouched.message_id
        assert event_id is not None
        assert request.content_type == "application/json"
        status = self._answer(event_id, self.ids.count(event_id) + 1)
        self.arrivals.append(Arrival(event_id, vouched.key.id, whole.body, status))
        self.reached.set()
        if status == 0:
            await self._closing.wait()
        return web.Response(status=status or 500)
