"""The rules of time zones, read from the files of the tzdata package, not from the system's. Pure but for reading.

A file holds transitions, and a last line in POSIX form that says how it goes on, such as PST8PDT,M3.2.0,M11.1.0
(RFC 8536).
"""

import re
import struct
from dataclasses import dataclass
from importlib.resources import files

from calve.expressions.joda import gregorian
from calve.expressions.joda.gregorian import DAY, HOUR, MINUTE, SECOND
from calve.expressions.joda.longs import LONG_MAX, LONG_MIN

_HEADER = struct.Struct(">4s1s15x6I")
_TYPE = struct.Struct(">iBB")
_LAST_YEAR_LISTED = 2100


@dataclass(frozen=True, slots=True)
class Period:
    """A time with one offset, from ``start`` to the start of the next."""

    start: int
    offset: int
    is_daylight: bool


@dataclass(frozen=True, slots=True)
class YearlyChange:
    """A change of the clocks that comes every year: on a weekday of a week of a month, at a local time."""

    month: int
    week: int
    """From 1; 5 is the last."""
    weekday: int
    """From 0, Sunday."""
    time: int
    offset_before: int
    offset: int
    is_daylight: bool

    def in_year(self, year: int) -> Period:
        """Return the period that the change starts in a year."""
        first = gregorian.day_number(year, self.month, 1)
        day = 1 + (self.weekday - (first + 4)) % 7 + (self.week - 1) * 7
        if day > gregorian.days_in_month(year, self.month):
            day -= 7
        local = (first + day - 1) * DAY + self.time
        return Period(local - self.offset_before, self.offset, self.is_daylight)


@dataclass(frozen=True, slots=True)
class ZoneRules:
    """Every period up to a year far enough, and the changes that go on after it."""

    periods: tuple[Period, ...]
    """The first starts with the first millisecond there is."""
    yearly: tuple[YearlyChange, ...]


def rules_of(zone_id: str) -> ZoneRules:
    """Read the rules of a zone that is known to exist."""
    content = files("tzdata").joinpath("zoneinfo", *zone_id.split("/")).read_bytes()
    periods, footer = _read(content)
    yearly = _yearly_changes(footer)
    last = periods[-1].start
    first_year = gregorian.year_of(max(last, 0))
    listed = (change.in_year(year) for year in range(first_year, _LAST_YEAR_LISTED + 1) for change in yearly)
    more = sorted((period for period in listed if period.start > last), key=lambda period: period.start)
    return ZoneRules((*periods, *more), yearly)


def known_ids() -> frozenset[str]:
    """Return every id that the tzdata package has, but for the one that says no zone is set."""
    return frozenset(files("tzdata").joinpath("zones").read_text().split()) - {"Factory"}


def _read(content: bytes) -> tuple[list[Period], str]:
    """Return a file's periods and its last line."""
    _, _, utc_count, standard_count, leap_count, time_count, type_count, char_count = _HEADER.unpack_from(content)
    # The first block has 32-bit times, for old readers.
    start = _HEADER.size + time_count * 5 + type_count * 6 + char_count + leap_count * 8 + standard_count + utc_count
    _, _, utc_count, standard_count, leap_count, time_count, type_count, char_count = _HEADER.unpack_from(
        content, start
    )
    start += _HEADER.size
    times = struct.unpack_from(f">{time_count}q", content, start)
    indexes = content[start + time_count * 8 : start + time_count * 9]
    start += time_count * 9
    types = list(_TYPE.iter_unpack(content[start : start + type_count * _TYPE.size]))
    end = start + type_count * _TYPE.size + char_count + leap_count * 12 + standard_count + utc_count
    starts = (LONG_MIN, *(time * SECOND for time in times))
    periods = [
        Period(time, types[index][0] * SECOND, bool(types[index][1]))
        for time, index in zip(starts, (0, *indexes), strict=True)
    ]
    return periods, content[end:].decode().strip()


_NAME = r"(?:<[^>]+>|[A-Za-z]+)"
_OFFSET = r"[+-]?\d+(?::\d+)*"
_CHANGE = r"M(\d+)\.(\d)\.(\d)(?:/([^,]+))?"
_FOOTER = re.compile(f"{_NAME}({_OFFSET}){_NAME}({_OFFSET})?,{_CHANGE},{_CHANGE}")


def _yearly_changes(footer: str) -> tuple[YearlyChange, ...]:
    """Return the two changes that a last line describes, none if the offset stays."""
    match = _FOOTER.fullmatch(footer)
    if match is None:
        return ()
    standard_text, daylight_text, *changes = match.groups()
    standard = -_clock_time(standard_text)
    daylight = -_clock_time(daylight_text) if daylight_text else standard + HOUR
    # Ireland's standard time is the summer's, and its winter time is ahead of it by an hour less than none. Joda-Time
    # takes the later offset for daylight saving, everywhere.
    return (
        _yearly_change(changes[:4], standard, daylight),
        _yearly_change(changes[4:], daylight, standard),
    )


def _yearly_change(parts: list[str | None], before: int, after: int) -> YearlyChange:
    month, week, weekday, time = parts
    return YearlyChange(
        month=int(month or 0),
        week=int(week or 0),
        weekday=int(weekday or 0),
        time=_clock_time(time or "2"),
        offset_before=before,
        offset=after,
        is_daylight=after > before,
    )


def _clock_time(text: str) -> int:
    """Return the milliseconds of [±]h[:mm[:ss]]."""
    parts = text.lstrip("+-").split(":")
    millis = sum(int(part) * unit for part, unit in zip(parts, (HOUR, MINUTE, SECOND), strict=False))
    return -millis if text.startswith("-") else millis


def period_at(yearly: tuple[YearlyChange, ...], millis: int) -> Period:
    """Return the period that a millisecond after the listed ones is in."""
    return max((p for p in _around(yearly, millis) if p.start <= millis), key=lambda period: period.start)


def period_after(yearly: tuple[YearlyChange, ...], millis: int) -> Period | None:
    """Return the next period after a millisecond, None if it would start beyond the last millisecond there is."""
    later = [p for p in _around(yearly, millis) if millis < p.start <= LONG_MAX]
    return min(later, key=lambda period: period.start, default=None)


def _around(yearly: tuple[YearlyChange, ...], millis: int) -> list[Period]:
    year = gregorian.year_of(millis)
    return [change.in_year(near) for near in (year - 1, year, year + 1) for change in yearly]
