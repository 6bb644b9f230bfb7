"""Clocks: this machine's against the database's and the gateway's. A door with a wrong clock refuses every webhook."""

import http.client
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from tallyhook.clock import Clock
from tallyhook.operations.doctor.findings import Finding
from tallyhook.settings import GatewayApiSettings

NOTED_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Reading:
    """What another clock said, and how long it took to say it.

    Args:
        whose: as the finding names it.
        there: its time.
        asked, answered: this machine's time before and after.
        resolution_seconds: it may have been later by so much.
    """

    whose: str
    there: datetime
    asked: datetime
    answered: datetime
    resolution_seconds: float = 0.0

    @property
    def least_skew_seconds(self) -> float:
        """How far the clocks differ at least: above zero when the other one is ahead; 0 when they may agree."""
        latest = self.there + timedelta(seconds=self.resolution_seconds)
        if self.there > self.answered:
            return (self.there - self.answered) / timedelta(seconds=1)
        if latest < self.asked:
            return (latest - self.asked) / timedelta(seconds=1)
        return 0.0


def examine(reading: Reading, tolerance_seconds: float) -> Iterator[Finding]:
    """A difference of more than 2 s; one above the allowed age of a webhook refuses every one of them."""
    skew_seconds = reading.least_skew_seconds
    if abs(skew_seconds) <= NOTED_SECONDS:
        return
    breaks = abs(skew_seconds) > tolerance_seconds
    yield Finding(
        "clock_skew",
        "breaks" if breaks else "warning",
        ("P1",),
        f"this machine's clock and {reading.whose}",
        f"{abs(skew_seconds):.1f} s {'behind' if skew_seconds > 0 else 'ahead of'} it",
        f"at most {NOTED_SECONDS:g} s; the door takes a webhook whose timestamp is {tolerance_seconds:g} s off",
        "webhooks are refused with 401 as too old or from the future" if breaks else "ages and orders shown are wrong",
        "let both follow a time server: chronyc makestep, or timedatectl set-ntp true",
    )


def read_gateway(settings: GatewayApiSettings, clock: Clock) -> Reading:
    """The Date header of the gateway's API, asked without the key; raises OSError or ValueError when there is none."""
    parts = urlsplit(settings.url or "")
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port, timeout=settings.timeout_seconds, context=context
        )
    else:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=settings.timeout_seconds)
    try:
        connection.connect()
        asked = clock.now()
        connection.request("HEAD", parts.path or "/")
        date = connection.getresponse().getheader("Date")
        answered = clock.now()
    except http.client.HTTPException as failure:
        raise ValueError(f"no answer of HTTP: {failure!r}") from failure
    finally:
        connection.close()
    if date is None:
        raise ValueError("the answer has no Date header")
    there = parsedate_to_datetime(date)
    if there.tzinfo is None:
        raise ValueError(f"the Date header has no zone: {date}")
    return Reading("the gateway's", there, asked, answered, resolution_seconds=1.0)
