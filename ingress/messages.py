"""What the door takes and gives: requests and responses, whatever carries them."""

from dataclasses import dataclass, field

from schemas.door import ACCEPTED_BODY


@dataclass(frozen=True, slots=True)
class Head:
    """A request without its body.

    Args:
        method: as sent, in capitals.
        path: without query, not decoded: an escaped path is another path.
        headers: every header line in order; names in lower case, values as the bytes that were sent.
    """

    method: str
    path: str
    headers: tuple[tuple[bytes, bytes], ...]

    def all(self, name: bytes) -> list[bytes]:
        """The values of every line with this name (lower case)."""
        return [value for known, value in self.headers if known == name]


@dataclass(frozen=True, slots=True)
class Request:
    """A whole request."""

    head: Head
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """An answer; length, date and connection headers are the carrier's.

    Args:
        close: the connection ends with this answer.
    """

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = field(default=())
    close: bool = False


ACCEPTED = Response(200, ACCEPTED_BODY)
