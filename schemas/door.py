"""The door's contract over HTTP: what it answers, and the bounds that it has where no setting says otherwise."""

from dataclasses import dataclass
from typing import Literal, get_args

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

ACCEPTED_BODY = b'{"status":"accepted"}'
RETRY_AFTER_SECONDS = 5
PROBLEM_TYPE = "application/problem+json"

ENDPOINT_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
WEBHOOK_ID = r"[\x21-\x7e]+"
WEBHOOK_TIMESTAMP = r"[0-9]{1,12}"
WEBHOOK_SIGNATURE = r"[\x20-\x7e]+"
"""What the three headers may hold, whole values; the id has a bound of its own."""

MAX_PROOF_BYTES = 8192
"""Longest header of a proof. It travels with the record, and nobody has signed how long it is: without a bound, a
padded copy of an authentic request could make a record that fits into one topic and not into the next."""

TOLERANCE_SECONDS = 300
MAX_BODY_BYTES = 262_144
MAX_HEADERS = 64
MAX_HEADER_BYTES = 16_384
MAX_SIGNATURES = 16
MAX_ID_BYTES = 512
BODY_TIMEOUT_SECONDS = 10.0
HEAD_TIMEOUT_SECONDS = 10.0
DELIVERY_TIMEOUT_SECONDS = 8.0
MAX_IN_FLIGHT = 2000
MAX_HELD_BYTES = 134_217_728
"""The defaults of the settings of these names (`TALLYHOOK_INGRESS_...`); the time of the head is fixed."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The public side of a refusal."""

    status: int
    title: str
    detail: str


_NOT_AUTHENTIC = Problem(401, "Unauthorized", "The request is not an authentic webhook of this endpoint.")
_NOT_NOW = Problem(503, "Service Unavailable", "The event is not stored yet; send it again.")

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
    "not_confirmed": _NOT_NOW,
    "in_flight": _NOT_NOW,
    "connections": _NOT_NOW,
    "starting": _NOT_NOW,
    "shutting_down": _NOT_NOW,
    "internal": _NOT_NOW,
}


def problem_body(problem: Problem) -> dict[str, str | int]:
    """The members of the answer's body (RFC 9457)."""
    return {
        "type": "about:blank",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
    }
