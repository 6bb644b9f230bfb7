"""Errors of the API as problem+json (RFC 9457)."""

import orjson
from aiohttp import web

_TITLES = {
    400: "Bad request",
    401: "Not authenticated",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available",
}


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> web.Response:
    """An answer with the status, its title and what to do."""
    body = {"type": "about:blank", "title": _TITLES.get(status, "Error"), "status": status, "detail": detail}
    return web.Response(
        status=status, body=orjson.dumps(body), content_type="application/problem+json", headers=headers
    )
