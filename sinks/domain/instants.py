"""Instants: RFC 3339 date-times, read exactly as PostgreSQL's timestamptz reads them."""

import re
from datetime import UTC, datetime, timedelta

OFFSET_HOURS_MAX = 15
"""PostgreSQL takes zone offsets below 16 hours only."""

_MINUTE_MICROSECONDS = 60_000_000

# The digits are spelled out because \d takes those of every script, Thai ones too.
_DATE_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,30}))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)


def instant(text: str) -> datetime | None:
    """The instant of an RFC 3339 date-time, in UTC; None when the text is none.

    It must name a zone and a day that exists, in the years 1 to 9999 (UTC) that both Python and PostgreSQL keep.
    Second 60, without a fraction, is the first of the next minute, and fractions are rounded to microseconds, half to
    even, as timestamptz does it: the same text gives the same instant here and there.
    """
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, sign, zone_hours, zone_minutes = found.groups()
    microseconds = int(second) * 1_000_000
    if fraction is not None:
        microseconds += round(float("0." + fraction) * 1_000_000)
    if microseconds > _MINUTE_MICROSECONDS:
        return None
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), tzinfo=UTC)
        moment += timedelta(microseconds=microseconds)
        if sign is not None:
            hours, minutes = int(zone_hours), int(zone_minutes)
            if hours > OFFSET_HOURS_MAX or minutes > 59:
                return None
            offset = timedelta(hours=hours, minutes=minutes)
            moment = moment - offset if sign == "+" else moment + offset
    except (ValueError, OverflowError):
        return None
    return moment
