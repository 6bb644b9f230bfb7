"""One attempt over HTTP, as the gateway makes it: bounded in time, in answer size and in connections."""

from types import TracebackType
from typing import Final, Protocol
from urllib.parse import urlsplit

import aiohttp

from tallyhook.errors import UsageError
from tallyhook.gateway.counts import NO_ANSWER

ATTEMPT_SECONDS: Final = 10.0
MAX_ANSWER_BYTES: Final = 65_536
USER_AGENT: Final = "tallyhook-gateway-simulator"


class Receiver(Protocol):
    """Takes signed attempts."""

    async def post(self, body: bytes, headers: dict[str, str]) -> int:
        """The HTTP status of the answer; 0 when there was none in time."""
        ...


class HttpReceiver:
    """The merchant's URL; a context that holds the connections.

    Args:
        url: http or https, with the whole path.
        concurrency: most connections at once.
        timeout_seconds: patience for one whole attempt.

    Raises:
        UsageError: the URL is none.
    """

    def __init__(self, url: str, *, concurrency: int, timeout_seconds: float = ATTEMPT_SECONDS) -> None:
        self.url = checked_url(url)
        self._concurrency, self._timeout_seconds = concurrency, timeout_seconds
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "HttpReceiver":
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._concurrency),
            timeout=aiohttp.ClientTimeout(total=self._timeout_seconds),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": USER_AGENT},
            auto_decompress=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def post(self, body: bytes, headers: dict[str, str]) -> int:
        """One attempt; redirects are not followed, and an answer that does not end in time is none."""
        assert self._session is not None  # noqa: S101  used outside of its context: a fault of this program
        try:
            async with self._session.post(
                self.url, data=body, headers=headers | {"Content-Type": "application/json"}, allow_redirects=False
            ) as answer:
                await answer.content.read(MAX_ANSWER_BYTES)
                return answer.status
        except (aiohttp.ClientError, TimeoutError, OSError):
            return NO_ANSWER


def checked_url(url: str) -> str:
    """The URL, if one can post to it; raises UsageError."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as failure:
        raise UsageError(f"--target {url!a}: {failure}") from None
    if not (valid and url.isascii() and url.isprintable() and " " not in url):
        raise UsageError(f"--target {url!a}: must be http://host:port/path or https://...")
    return url
