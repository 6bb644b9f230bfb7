"""The paths of the gateway's REST API; what is assumed about them besides the paths stands in each docstring."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from tallyhook.gateway.api.books import MAX_PAGE, Books, ObjectKind, Page, UnknownId
from tallyhook.gateway.api.problems import problem

MAX_SEQUENCE: Final = (1 << 63) - 1
MAX_ID_CHARACTERS: Final = 512
ANY_ID: Final = "{id:.+}"
"""Ids are opaque: blanks, braces and slashes (as %2F) belong to them."""


class BadParameter(Exception):
    """A query parameter that cannot be used; the text says which and why."""


class Pages:
    """Answers as of a virtual moment.

    Args:
        moment: the virtual time that has been reached.
    """

    def __init__(self, books: Books, moment: Callable[[], datetime]) -> None:
        self._books, self._moment = books, moment

    def routes(self) -> list[web.RouteDef]:
        """What the server answers."""
        return [
            web.get("/v1/pay/events", self._events),
            web.get("/v1/pay/balance", self._balance),
            web.get("/v1/pay/balance/transactions", self._transactions),
            *self._of_kind("/v1/pay/deposits", "deposit_order"),
            *self._of_kind("/v1/pay/withdrawals", "withdrawal_order"),
        ]

    async def _events(self, request: web.Request) -> web.Response:
        """Assumed: `limit` 1..100, by default 100; the next page has the last one's sequence as `since_sequence`."""
        since = _number(request, "since_sequence", default=-1, low=-1, high=MAX_SEQUENCE)
        return _answer(self._books.events(since, _limit(request), self._moment()))

    async def _balance(self, _: web.Request) -> web.Response:
        """Assumed: a member `{bucket}_minor` a bucket."""
        return web.Response(body=orjson.dumps(self._books.balance(self._moment())), content_type="application/json")

    async def _transactions(self, request: web.Request) -> web.Response:
        """Assumed: pages go on behind the id in `starting_after`."""
        return _answer(self._books.transactions(_cursor(request), _limit(request), self._moment()))

    def _of_kind(self, path: str, kind: ObjectKind) -> list[web.RouteDef]:
        """Assumed: the object itself is the answer, a list has pages like the transactions."""

        async def listed(request: web.Request) -> web.Response:
            return _answer(self._books.objects(kind, _cursor(request), _limit(request), self._moment()))

        async def one(request: web.Request) -> web.Response:
            found = self._books.object(kind, request.match_info["id"], self._moment())
            return web.Response(body=found, content_type="application/json")

        return [web.get(path, listed), web.get(f"{path}/{ANY_ID}", one)]


@web.middleware
async def errors_as_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Unknown ids, paths and parameters, and what the framework refuses, as problem+json."""
    try:
        return await handler(request)
    except UnknownId:
        return problem(404, "no such id")
    except BadParameter as failure:
        return problem(400, str(failure))
    except web.HTTPException as failure:
        kept = {name: value for name, value in failure.headers.items() if name == "Allow"}
        return problem(failure.status, failure.reason, kept)


def _answer(page: Page) -> web.Response:
    return web.Response(body=page.as_json(), content_type="application/json")


def _limit(request: web.Request) -> int:
    return _number(request, "limit", default=MAX_PAGE, low=1, high=MAX_PAGE)


def _number(request: web.Request, name: str, *, default: int, low: int, high: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19 and low <= int(text) <= high):
        raise BadParameter(f"{name} must be a whole number from {low} to {high}")
    return int(text)


def _cursor(request: web.Request) -> str | None:
    text = request.query.get("starting_after")
    if text is not None and not 0 < len(text) <= MAX_ID_CHARACTERS:
        raise BadParameter(f"starting_after must be an id of 1 to {MAX_ID_CHARACTERS} characters")
    return text
