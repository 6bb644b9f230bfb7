"""What a connection asks of the door."""

from collections.abc import Awaitable
from typing import Protocol

from ingress.messages import Head, Request, Response
from ingress.refusals import Refused


class Handler(Protocol):
    """Answers requests; knows nothing of sockets."""

    def early(self, head: Head) -> Response | None:
        """An answer that needs no body, or None: then the request has entered, and `left` must follow."""
        ...

    def max_body_bytes(self, head: Head) -> int:
        """How large the body of a request may be that has entered; counted while it is read."""
        ...

    def answer(self, request: Request) -> Awaitable[Response]:
        """The answer to a request that has entered; `left` must follow all the same."""
        ...

    def refused(self, refusal: Refused) -> Response:
        """The answer to a request that cannot be read whole."""
        ...

    def left(self) -> None:
        """A request that had entered was answered or given up."""
        ...
