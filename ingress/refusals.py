"""Why the door refuses, and what the sender is told: problem+json (RFC 9457).

All reasons that concern authenticity share one body, so that a forger learns nothing; the reason is in log and metric.
"""

import orjson

from ingress.messages import Response
from schemas.door import (
    PROBLEM_TYPE,
    PROBLEMS,
    REFUSAL_REASONS,
    RETRY_AFTER_SECONDS,
    Problem,
    RefusalReason,
    problem_body,
)

__all__ = ["PROBLEMS", "REFUSAL_REASONS", "RETRY_AFTER_SECONDS", "Problem", "RefusalReason", "Refused", "response_of"]


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
    return Response(problem.status, orjson.dumps(problem_body(problem)), PROBLEM_TYPE, tuple(headers), close)
