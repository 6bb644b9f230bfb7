"""Moments in words: time zones, other days, and clocks that show an hour twice."""

from datetime import UTC, datetime

import pytest

from tallyhook.errors import UsageError
from tallyhook.operations.timeline.catalogue import Language, catalogue
from tallyhook.operations.timeline.clock_words import ClockWords, in_zone, zone

NEW_YEAR = datetime(2026, 12, 31, 17, 30, tzinfo=UTC)
TWICE = (datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC))


def clock(name: str, *moments: datetime, language: Language = "en") -> ClockWords:
    """A page's clock."""
    return ClockWords(zone(name), catalogue(language), moments)


def test_the_same_moment_is_another_day_elsewhere() -> None:
    """00:30 on 1 January in Bangkok is 17:30 on 31 December in UTC, and each page says so."""
    thai = clock("Asia/Bangkok", NEW_YEAR, language="th")
    assert thai.say(NEW_YEAR) == "00:30"
    assert thai.zone_line() == "วันที่ 1 มกราคม 2027 เวลาตามเขต Asia/Bangkok (UTC+07:00)"
    utc = clock("UTC", NEW_YEAR)
    assert utc.say(NEW_YEAR) == "17:30"
    assert utc.zone_line() == "31 December 2026, times in UTC"


def test_another_day_than_the_first_is_named() -> None:
    """The page's day is that of its first moment; a moment of another one carries its date."""
    first, later = datetime(2026, 12, 31, 3, 0, tzinfo=UTC), NEW_YEAR
    english = clock("Asia/Bangkok", later, first)
    assert (english.say(first), english.say(later)) == ("10:00", "1 Jan 2027 00:30")
    assert english.zone_line().startswith("31 December 2026, ")
    assert clock("Asia/Bangkok", later, first, language="th").say(later) == "1 ม.ค. 2027 00:30"


def test_an_hour_that_comes_twice_carries_its_offset() -> None:
    """At the end of summer time 02:30 is shown twice; the hours around it need no offset."""
    berlin = clock("Europe/Berlin", *TWICE)
    assert [berlin.say(moment) for moment in TWICE] == ["02:30 (UTC+02:00)", "02:30 (UTC+01:00)"]
    assert berlin.zone_line() == "25 October 2026, times in Europe/Berlin (UTC+02:00 / UTC+01:00)"
    assert berlin.say(datetime(2026, 10, 25, 2, 0, tzinfo=UTC)) == "03:00"
    assert clock("Asia/Bangkok", *TWICE).say(TWICE[0]) == "07:30"


def test_a_page_without_moments_names_its_zone() -> None:
    """Nothing has happened, and the reader knows which clock is meant."""
    assert clock("Asia/Bangkok").zone_line() == "Times in Asia/Bangkok"
    assert clock("Asia/Bangkok").say(None) == "time unknown"


def test_offsets_west_of_greenwich_and_of_half_hours() -> None:
    """The sign and the minutes are right."""
    assert "(UTC-03:30)" in clock("America/St_Johns", NEW_YEAR).zone_line()
    assert "(UTC+05:45)" in clock("Asia/Kathmandu", NEW_YEAR).zone_line()


def test_the_end_of_the_calendar_is_no_error() -> None:
    """A moment that has no date in the zone is shown in UTC, with its offset for support."""
    last = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    assert clock("Asia/Bangkok", last).say(last) == "23:59"
    assert in_zone(last, zone("Asia/Bangkok")) == "9999-12-31 23:59:00+00:00"
    assert in_zone(NEW_YEAR, zone("Asia/Bangkok")) == "2027-01-01 00:30:00+07:00"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Bangkok", "did you mean Asia/Bangkok"),
        ("asia/bangkok", "did you mean Asia/Bangkok"),
        ("Europe/Berln", "did you mean Europe/Berlin"),
        ("", "such as Asia/Bangkok or UTC"),
        ("../../etc/passwd", "such as Asia/Bangkok or UTC"),
        ("Europe", "there is no such time zone"),
        ("x\x00y", "such as Asia/Bangkok or UTC"),
    ],
)
def test_an_unknown_zone_is_refused_with_a_hint(name: str, hint: str) -> None:
    """Wrong usage, with the names that are near."""
    with pytest.raises(UsageError, match=hint):
        zone(name)
