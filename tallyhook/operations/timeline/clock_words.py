"""Moments in words: the hour of a page's own day, the date where it is another one, the offset where it is needed."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from tallyhook.errors import UsageError
from tallyhook.operations.timeline.catalogue import Catalogue

DEFAULT_ZONE = "Asia/Bangkok"


def zone(name: str) -> ZoneInfo:
    """The time zone of an IANA name; raises UsageError with names that are near."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        pass
    by_folded = {known.casefold(): known for known in available_timezones()}
    cities = {known.rsplit("/", 1)[-1]: known for known in by_folded}
    wanted = name.casefold()
    near = [cities[city] for city in get_close_matches(wanted, cities, 1)]
    near += get_close_matches(wanted, by_folded, 2)
    hint = ", ".join(dict.fromkeys(by_folded[one] for one in near))
    raise UsageError(
        f"--tz {name}: there is no such time zone; "
        + (f"did you mean {hint}?" if hint else f"give a name of the IANA list, such as {DEFAULT_ZONE} or UTC")
    )


def offset_words(moment: datetime) -> str:
    """The offset of an aware moment in its zone: `UTC+07:00`."""
    offset = moment.utcoffset()
    minutes = 0 if offset is None else round(offset.total_seconds() / 60)
    return f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


class ClockWords:
    """How one page says its moments.

    Args:
        place: the zone that the page is read in.
        words: the page's language.
        moments: every moment that the page shows; the earliest one's day is the page's day.
    """

    def __init__(self, place: ZoneInfo, words: Catalogue, moments: Iterable[datetime]) -> None:
        self._place, self._words = place, words
        self._moments = [_local(moment, place) for moment in sorted(moments)]
        self._day = self._moments[0].date() if self._moments else None

    def say(self, moment: datetime | None) -> str:
        """`HH:MM`; with the date on another day than the page's, with the offset where the clock shows it twice."""
        if moment is None:
            return self._words.text("time.unknown")
        local = _local(moment, self._place)
        said = f"{local:%H:%M}"
        if local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset():
            said = self._words.text("time.ambiguous", time=said, offset=offset_words(local))
        if local.date() == self._day:
            return said
        return self._words.text("time.other_day", date=self._date(local.date(), "short"), time=said)

    def zone_line(self) -> str:
        """The page's day and zone with its offset (both where the clock was changed); said once a page."""
        offsets = " / ".join(dict.fromkeys(offset_words(moment) for moment in self._moments))
        name = str(self._place)
        named = name if name == "UTC" or not offsets else f"{name} ({offsets})"
        if self._day is None:
            return self._words.text("time.zone", zone=named)
        return self._words.text("time.day_and_zone", date=self._date(self._day, "long"), zone=named)

    def _date(self, day: date, form: str) -> str:
        month = self._words.text(f"months.{form}").split()[day.month - 1]
        return self._words.text("time.date", day=day.day, month=month, year=day.year)


def in_zone(moment: datetime, place: ZoneInfo) -> str:
    """A moment to the second with its offset, for support: `2026-08-21 10:19:47+07:00`."""
    return _local(moment, place).isoformat(" ", "seconds")


def _local(moment: datetime, place: ZoneInfo) -> datetime:
    """The moment in the zone; at the very end of the calendar, where that day has no date, in UTC."""
    try:
        return moment.astimezone(place)
    except OverflowError:
        return moment.astimezone(UTC)
