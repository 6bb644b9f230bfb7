"""Why the door refuses, and what the sender is told: problem+json (RFC 9457).

All reasons that concern authenticity share one body, so that a forger learns nothing; the reason is in log and metric.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import orjson

from ingress.messages import Response

RefusalReason = Literal[
    "signature",
    "id",
    "timestamp_malformed",
    "timestamp",
    "key_window",
    "test_key",
    "malformed",
    "headers_too_large",
    "body_too_slow",
    "body_incomplete",
    "not_found",
    "method",
    "body_too_large",
    "content_encoding",
    "not_confirmed",
    "in_flight",
    "connections",
    "starting",
    "shutting_down",
    "internal",
]
REFUSAL_REASONS: tuple[RefusalReason, ...] = get_args(RefusalReason)

RETRY_AFTER_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """The public side of a refusal."""

    status: int
    title: str
    detail: str


_NOT_AUTHENTIC = Problem(401, "Unauthorized", "The request is not an authentic webhook of this endpoint.")
_NOT_NOW = "The event is not stored yet; send it again."

PROBLEMS: dict[RefusalReason, Problem] = {
    "signature": _NOT_AUTHENTIC,
    "id": _NOT_AUTHENTIC,
    "timestamp_malformed": _NOT_AUTHENTIC,
    "timestamp": _NOT_AUTHENTIC,
    "key_window": _NOT_AUTHENTIC,
    "test_key": _NOT_AUTHENTIC,
    "malformed": Problem(400, "Bad Request", "The request cannot be read as HTTP/1.1."),
    "headers_too_large": Problem(400, "Bad Request", "The request has more headers than this endpoint reads."),
    "body_too_slow": Problem(400, "Bad Request", "The request did not arrive whole in time."),
    "body_incomplete": Problem(400, "Bad Request", "The connection ended before the request was whole."),
    "not_found": Problem(404, "Not Found", "There is no such endpoint."),
    "method": Problem(405, "Method Not Allowed", "This path does not take that method."),
    "body_too_large": Problem(413, "Content Too Large", "The body is larger than this endpoint takes."),
    "content_encoding": Problem(415, "Unsupported Media Type", "Send the signed bytes without Content-Encoding."),
    "not_confirmed": Problem(503, "Service Unavailable", _NOT_NOW),
    "in_flight": Problem(503, "Service Unavailable", _NOT_NOW),
    "connections": Problem(503, "Service Unavailable", _NOT_NOW),
    "starting": Problem(503, "Service Unavailable", _NOT_NOW),
    "shutting_down": Problem(503, "Service Unavailable", _NOT_NOW),
    "internal": Problem(503, "Service Unavailable", _NOT_NOW),
}


class Refused(Exception):
    """A request that is refused.

    Args:
        reason: for the metric.
        detail: for the log; never a part of the body, never a secret.
    """

    def __init__(self, reason: RefusalReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


def response_of(reason: RefusalReason, *, allow: str | None = None, close: bool = False) -> Response:
    """The answer to a refused request; `allow` names the methods that a path takes."""
    problem = PROBLEMS[reason]
    headers: list[tuple[str, str]] = [("cache-control", "no-store")]
    if allow is not None:
        headers.append(("allow", allow))
    if problem.status == 503:
        headers.append(("retry-after", str(RETRY_AFTER_SECONDS)))
    body = {"type": "about:blank", "title": problem.title, "status": problem.status, "detail": problem.detail}
    return Response(problem.status, orjson.dumps(body), "application/problem+json", tuple(headers), close)
