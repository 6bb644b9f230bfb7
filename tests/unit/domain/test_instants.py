"""Instants: RFC 3339 with a zone, read as PostgreSQL reads it."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.domain.instants import instant


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-07-01T10:33:15Z", datetime(2026, 7, 1, 10, 33, 15, tzinfo=UTC)),
        ("2026-07-01t10:33:15z", datetime(2026, 7, 1, 10, 33, 15, tzinfo=UTC)),
        ("2026-07-01 10:33:15-00:00", datetime(2026, 7, 1, 10, 33, 15, tzinfo=UTC)),
        ("2026-07-01T17:33:15.25+07:00", datetime(2026, 7, 1, 10, 33, 15, 250_000, tzinfo=UTC)),
        ("2026-07-01T02:03:15-08:30", datetime(2026, 7, 1, 10, 33, 15, tzinfo=UTC)),
        ("2024-02-29T00:00:00Z", datetime(2024, 2, 29, tzinfo=UTC)),
        ("2026-06-30T23:59:60Z", datetime(2026, 7, 1, tzinfo=UTC)),
        ("2026-07-01T10:33:15.0000005Z", datetime(2026, 7, 1, 10, 33, 15, 0, tzinfo=UTC)),
        ("2026-07-01T10:33:15.0000015Z", datetime(2026, 7, 1, 10, 33, 15, 2, tzinfo=UTC)),
        ("2026-12-31T23:59:59.9999996Z", datetime(2027, 1, 1, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999999Z", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("2026-07-01T10:33:15+15:59", datetime(2026, 6, 30, 18, 34, 15, tzinfo=UTC)),
    ],
)
def test_a_date_time_with_a_zone_is_an_instant(text: str, expected: datetime) -> None:
    """Zones, fractions, leap days and second 60 come out as timestamptz has them."""
    assert instant(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-07-01",
        "2026-07-01T10:33:15",
        "2026-07-01T10:33Z",
        "2026-07-01T10:33:15+0700",
        "2026-07-01T10:33:15+07",
        "2026-07-01T10:33:15 Asia/Bangkok",
        "2026-02-30T10:33:15Z",
        "2025-02-29T10:33:15Z",
        "2026-13-01T10:33:15Z",
        "2026-00-10T10:33:15Z",
        "2026-07-00T10:33:15Z",
        "2026-07-01T24:00:00Z",
        "2026-07-01T10:60:15Z",
        "2026-07-01T10:33:61Z",
        "2026-07-01T10:33:60.1Z",
        "2026-07-01T10:33:15+16:00",
        "2026-07-01T10:33:15+07:60",
        "2026-07-01T10:33:15.Z",
        "2026-07-01T10:33:15." + "1" * 31 + "Z",
        "0000-07-01T10:33:15Z",
        "0001-01-01T00:00:00+07:00",
        "9999-12-31T23:59:59-07:00",
        "9999-12-31T23:59:60Z",
        "12026-07-01T10:33:15Z",
        "-2026-07-01T10:33:15Z",
        "2026-W27-3T10:33:15Z",
        "20260701T103315Z",
        " 2026-07-01T10:33:15Z",
        "2026-07-01T10:33:15Z\n",
        "๒๐๒๖-07-01T10:33:15Z",
        "infinity",
        "now",
        "1782901995",
    ],
)
def test_anything_else_is_none(text: str) -> None:
    """No zone, no such day, or out of PostgreSQL's or Python's range."""
    assert instant(text) is None


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31)),  # noqa: DTZ001 - hypothesis takes zones apart
    st.integers(-15 * 60, 15 * 60),
)
def test_every_instant_is_read_back(moment: datetime, offset_minutes: int) -> None:
    """What another program writes in any zone is the same instant here."""
    zoned = moment.replace(tzinfo=timezone(timedelta(minutes=offset_minutes)))
    assert instant(zoned.isoformat()) == zoned
