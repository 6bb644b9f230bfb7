"""Requests to the gateway's API: one connection, bounded in time, bytes, tries and rate. The key is never shown."""

import http.client
import random
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from tallyhook.clock import Clock
from tallyhook.errors import SettingsError, TallyhookError
from tallyhook.settings import GatewayApiSettings

ANSWER_BYTES_MAX = 64 << 20
"""A page of 100 events of the largest size that the door takes by default is 25 MiB."""
FIRST_RETRY_SECONDS = 0.25
CHUNK_BYTES = 1 << 16
SHOWN_CHARS = 300

Query = Mapping[str, str | int]


class GatewayUnavailable(TallyhookError):
    """The gateway's API did not answer within the allowed tries."""


class GatewayRefused(TallyhookError):
    """The gateway's API refuses the request; to repeat it would not help."""


class UnexpectedAnswer(TallyhookError):
    """The gateway's API answers in another shape than the one that is assumed here."""


class Stopped(TallyhookError):
    """Somebody asked to stop while the gateway was waited for."""

    exit_code = 130


class _TryAgain(Exception):
    def __init__(self, why: str, after_seconds: float | None = None) -> None:
        super().__init__(why)
        self.after_seconds = after_seconds


class GatewayHttp:
    """A client of one gateway account; used by one thread.

    Args:
        stopping: once set, waiting ends with Stopped.

    Raises:
        SettingsError: the address or the key is not set, or the key cannot be sent.
    """

    def __init__(self, settings: GatewayApiSettings, *, clock: Clock, stopping: threading.Event) -> None:
        if settings.url is None or settings.key is None:
            raise SettingsError(
                "TALLYHOOK_GATEWAY_API_URL and TALLYHOOK_GATEWAY_API_KEY (or TALLYHOOK_GATEWAY_API_KEY_FILE) are not"
                " set: give the address and the key of the gateway's API"
            )
        key = settings.key.get_secret_value()
        if not key or not all("!" <= character <= "~" for character in key):
            raise SettingsError("TALLYHOOK_GATEWAY_API_KEY=...: must be visible ASCII without blanks")
        parts = urlsplit(settings.url)
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname or "", parts.port
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
        self._settings, self._clock, self._stopping = settings, clock, stopping
        self._connection: http.client.HTTPConnection | None = None
        self._due_seconds = 0.0
        # The waits of several clients must differ, so that they do not meet again; nothing secret hangs on it.
        self._chance = random.Random()  # noqa: S311

    def get(self, path: str, query: Query | None = None) -> bytes | None:
        """The body of a 200, None for a 404.

        Args:
            path: from the root, its parts quoted by the caller (see `quoted`).

        Raises:
            GatewayUnavailable, GatewayRefused, UnexpectedAnswer, Stopped.
        """
        target = self._prefix + path + (f"?{urlencode(query)}" if query else "")
        for attempt in range(1, self._settings.attempts + 1):
            self._wait_for_turn()
            try:
                return self._attempt(target)
            except _TryAgain as failure:
                self.close()
                if attempt == self._settings.attempts:
                    raise GatewayUnavailable(
                        f"the gateway's API did not answer {path} in {attempt} tries: {failure};"
                        " run the command again later, it goes on where it was"
                    ) from None
                self._wait(self._pause_seconds(attempt, failure))
        raise GatewayUnavailable(f"the gateway's API was not asked for {path}")

    def close(self) -> None:
        """Ends the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _attempt(self, target: str) -> bytes | None:
        deadline = self._clock.monotonic_seconds() + self._settings.timeout_seconds
        try:
            connection = self._open()
            connection.request("GET", target, headers=self._headers)
            answer = connection.getresponse()
            body = self._read(answer, deadline)
        except (OSError, http.client.HTTPException) as failure:
            raise _TryAgain(f"{type(failure).__name__} {str(failure)[:SHOWN_CHARS]}".strip()) from None
        if answer.status == 200:
            return body
        if answer.status == 404:
            return None
        told = f"{answer.status} {_problem(body)}".strip()
        if answer.status in (408, 425, 429) or answer.status >= 500:
            raise _TryAgain(told, _retry_after(answer.getheader("Retry-After"), self._clock.now()))
        if answer.status in (401, 403):
            raise GatewayRefused(f"the gateway's API refuses the key ({told}): check TALLYHOOK_GATEWAY_API_KEY")
        raise GatewayRefused(f"the gateway's API refuses the request ({told}); check TALLYHOOK_GATEWAY_API_URL")

    def _read(self, answer: http.client.HTTPResponse, deadline: float) -> bytes:
        parts, held_bytes = [], 0
        while True:
            left = deadline - self._clock.monotonic_seconds()
            if left <= 0:
                raise TimeoutError(f"the answer was not whole within {self._settings.timeout_seconds:g} s")
            part = answer.read1(CHUNK_BYTES)
            if not part:
                break
            parts.append(part)
            held_bytes += len(part)
            if held_bytes > ANSWER_BYTES_MAX:
                self.close()
                raise UnexpectedAnswer(f"the gateway's API sends more than {ANSWER_BYTES_MAX} bytes in one answer")
        if answer.length:
            raise http.client.IncompleteRead(b"", answer.length)
        answer.close()  # read piece by piece, it does not notice its end, and would hold the connection
        return b"".join(parts)

    def _open(self) -> http.client.HTTPConnection:
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            self._connection = kind(self._host, self._port, timeout=self._settings.timeout_seconds)
        return self._connection

    def _wait_for_turn(self) -> None:
        now = self._clock.monotonic_seconds()
        self._due_seconds = max(self._due_seconds, now)
        self._wait(self._due_seconds - now)
        self._due_seconds += 1.0 / self._settings.requests_per_second

    def _pause_seconds(self, attempt: int, failure: _TryAgain) -> float:
        most = self._settings.retry_max_seconds
        if failure.after_seconds is not None:
            if failure.after_seconds > most:
                raise GatewayUnavailable(
                    f"the gateway's API asks to come again in {failure.after_seconds:.0f} s, which is longer than"
                    f" TALLYHOOK_GATEWAY_API_RETRY_MAX_SECONDS ({most:g}): run the command again then"
                )
            return failure.after_seconds
        grown: float = min(most, FIRST_RETRY_SECONDS * 2.0 ** min(attempt - 1, 30))
        return grown * (0.5 + self._chance.random() / 2)

    def _wait(self, seconds: float) -> None:
        if self._stopping.wait(max(0.0, seconds)):
            raise Stopped("stopped; run it again to go on")


def quoted(part: str) -> str:
    """One part of a path: an id may hold anything."""
    return quote(part, safe="")


def _problem(body: bytes) -> str:
    """What a problem+json says (RFC 9457), bounded; empty where it says nothing."""
    try:
        told = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    texts = [told.get(name) for name in ("title", "detail")] if isinstance(told, dict) else []
    shown = ": ".join(text for text in texts if isinstance(text, str))[:SHOWN_CHARS]
    return "".join(character if character.isprintable() else "?" for character in shown)


def _retry_after(header: str | None, now: datetime) -> float | None:
    """Seconds to wait (RFC 9110, section 10.2.3: seconds or a date); None where it does not tell."""
    if header is None:
        return None
    if header.isascii() and header.isdigit() and len(header) <= 9:
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
