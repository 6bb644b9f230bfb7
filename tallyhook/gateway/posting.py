"""Posting one signed attempt, as the gateway would."""

import http.client
import re
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from tallyhook.errors import UsageError

TIMEOUT_SECONDS = 30.0
MAX_ANSWER_BYTES = 65_536

_TARGET = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Args:
        status: 0 where there was no answer.
        text: the body, or why there was no answer.
        retry_after: the header of that name.
    """

    status: int
    text: str
    retry_after: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether the receiver took responsibility."""
        return 200 <= self.status < 300


class Poster:
    """Posts over one kept connection; opens another when it was closed.

    Args:
        url: http or https, with the whole path.

    Raises:
        UsageError: the URL is none.
    """

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as failure:
            raise UsageError(f"--url {url!a}: {failure}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"--url {url!a}: must be http://host:port/path or https://...")
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if _TARGET.fullmatch(self._target) is None:
            raise UsageError(f"--url {url!a}: its path must be visible ASCII; write other bytes as %XX")
        try:
            self._connection = (
                http.client.HTTPSConnection(
                    parts.hostname, port, timeout=TIMEOUT_SECONDS, context=ssl.create_default_context()
                )
                if parts.scheme == "https"
                else http.client.HTTPConnection(parts.hostname, port, timeout=TIMEOUT_SECONDS)
            )
        except http.client.InvalidURL as failure:
            raise UsageError(f"--url {url!a}: {failure}") from None

    def post(self, body: bytes, headers: dict[str, str]) -> Answer:
        """One attempt; a connection that fails is an answer with status 0."""
        try:
            self._connection.request("POST", self._target, body, headers | {"content-type": "application/json"})
            response = self._connection.getresponse()
            text = response.read(MAX_ANSWER_BYTES).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException, UnicodeError) as failure:
            # The standard library says with a UnicodeError that a host's name cannot be one.
            self._connection.close()
            return Answer(0, f"no answer: {str(failure) or type(failure).__name__}")
        if response.will_close:
            self._connection.close()
        return Answer(response.status, text, response.getheader("retry-after"))

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()
