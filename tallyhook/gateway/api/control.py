"""The simulator's own paths, which no real gateway has: resend an event, look at the counts, health."""

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import orjson
from aiohttp import web

from tallyhook.gateway.api.books import Books
from tallyhook.gateway.api.pages import ANY_ID
from tallyhook.gateway.api.problems import problem
from tallyhook.gateway.delivery import DeliveryEngine, TooManyResends

RESENDABLE: Final = timedelta(days=30)
"""How long after its creation an event can be resent by hand, in virtual time."""


class Control:
    """Plays the person at the gateway's dashboard.

    Args:
        moment: the virtual time of the deliveries.
        finished: whether every delivery has ended.
    """

    def __init__(
        self, engine: DeliveryEngine, books: Books, moment: Callable[[], datetime], finished: Callable[[], bool]
    ) -> None:
        self._engine, self._books, self._moment, self._finished = engine, books, moment, finished

    def routes(self) -> list[web.RouteDef]:
        """What the server answers."""
        return [
            web.post(f"/simulator/resend/{ANY_ID}", self._resend),
            web.get("/simulator/state", self._state),
            web.get("/livez", self._health),
            web.get("/readyz", self._health),
        ]

    async def _resend(self, request: web.Request) -> web.Response:
        """202; the delivery begins at once, and is tried again like any other."""
        moment = self._moment()
        event = self._books.event(request.match_info["id"], moment)
        # Once everything is delivered the virtual time runs on without meaning: nothing grows too old by it.
        if not self._finished() and moment - event.created_at > RESENDABLE:
            return problem(409, f"{event.id} is older than {RESENDABLE.days} days")
        try:
            self._engine.resend(event)
        except TooManyResends:
            return problem(503, "too many resends wait", {"Retry-After": "1"})
        return web.Response(
            status=202, body=orjson.dumps({"status": "accepted", "id": event.id}), content_type="application/json"
        )

    async def _state(self, _: web.Request) -> web.Response:
        shown = self._engine.counts.as_json() | {"finished": self._finished(), "virtual_now": self._moment()}
        return web.Response(
            body=orjson.dumps(shown, option=orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS),
            content_type="application/json",
        )

    async def _health(self, _: web.Request) -> web.Response:
        # The pid tells a supervisor that it is this process which answers, and no other one on the same port.
        return web.Response(body=orjson.dumps({"status": "ok", "pid": os.getpid()}), content_type="application/json")
