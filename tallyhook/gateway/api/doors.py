"""What stands before the API's pages: the key, and the faults that a client must live with."""

import hmac
import random
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from tallyhook.errors import UsageError
from tallyhook.gateway.api.problems import problem

API_PATHS: Final = "/v1/"
OPEN_PATHS: Final = frozenset({"/livez", "/readyz"})
RETRY_AFTER_SECONDS: Final = 1


class KeyDoor:
    """Lets in who has the API key; assumed: `Authorization: Bearer <key>`."""

    def __init__(self, api_key: str) -> None:
        self._expected = f"Bearer {api_key}".encode()

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """401 for anybody else; the health pages are open."""
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if request.path not in OPEN_PATHS and not hmac.compare_digest(given, self._expected):
            detail = "give the API key as Authorization: Bearer ..."
            return problem(401, detail, {"WWW-Authenticate": "Bearer"})
        return await handler(request)


class FaultDoor:
    """Answers a share of the API's requests with 429 or 500 instead.

    Args:
        share: 0..1.
        seed: the same faults come in the same order.

    Raises:
        UsageError: the share is out of bounds.
    """

    def __init__(self, share: float, seed: int) -> None:
        if not 0 <= share <= 1:
            raise UsageError(f"--api-fault-share {share:g}: must be a share from 0 to 1")
        self._share = share
        self._chance = random.Random(f"{seed}/faults")  # noqa: S311  a seeded world, not a secret

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Faults meet those who have the key, on the API's own paths."""
        if request.path.startswith(API_PATHS) and self._chance.random() < self._share:
            if self._chance.random() < 0.5:
                return problem(429, "slow down", {"Retry-After": str(RETRY_AFTER_SECONDS)})
            return problem(500, "injected fault: ask again")
        return await handler(request)
